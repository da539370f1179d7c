"""Every Redis key of the protocol (internal/base/base.go), built here and nowhere else.

All keys of a queue carry the hash tag ``{queue}``, so one script may touch any of them on a Redis Cluster.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

ALL_QUEUES: Final = "asynq:queues"
ALL_SERVERS: Final = "asynq:servers"
ALL_WORKERS: Final = "asynq:workers"
ALL_SCHEDULERS: Final = "asynq:schedulers"
CANCEL_CHANNEL: Final = "asynq:cancel"


@dataclass(frozen=True)
class QueueKeys:
    """The keys of one queue."""

    queue: str

    @cached_property
    def prefix(self) -> str:
        """What every key of the queue starts with; the braces are the cluster's hash tag."""
        return f"asynq:{{{self.queue}}}:"

    @cached_property
    def task_prefix(self) -> str:
        """What the hash of every task starts with."""
        return f"{self.prefix}t:"

    @cached_property
    def group_prefix(self) -> str:
        """What the sorted set of every group starts with."""
        return f"{self.prefix}g:"

    @cached_property
    def pending(self) -> str:
        """LIST of ids; pushed left, popped right."""
        return f"{self.prefix}pending"

    @cached_property
    def active(self) -> str:
        """LIST of ids in work; newest left."""
        return f"{self.prefix}active"

    @cached_property
    def lease(self) -> str:
        """ZSET id → lease expiry, unix seconds."""
        return f"{self.prefix}lease"

    @cached_property
    def scheduled(self) -> str:
        """ZSET id → process-at, unix seconds."""
        return f"{self.prefix}scheduled"

    @cached_property
    def retry(self) -> str:
        """ZSET id → retry-at, unix seconds."""
        return f"{self.prefix}retry"

    @cached_property
    def archived(self) -> str:
        """ZSET id → archived-at, unix seconds."""
        return f"{self.prefix}archived"

    @cached_property
    def completed(self) -> str:
        """ZSET id → expiry, unix seconds."""
        return f"{self.prefix}completed"

    @cached_property
    def paused(self) -> str:
        """STRING; exists while the queue is paused."""
        return f"{self.prefix}paused"

    @cached_property
    def groups(self) -> str:
        """SET of the groups with waiting tasks."""
        return f"{self.prefix}groups"

    @cached_property
    def aggregation_sets(self) -> str:
        """ZSET full key of an aggregation set in progress → its deadline, unix seconds."""
        return f"{self.prefix}aggregation_sets"

    @cached_property
    def unique_prefix(self) -> str:
        """What every unique lock starts with."""
        return f"{self.prefix}unique:"

    @cached_property
    def processed(self) -> str:
        """Counter of all tasks ever processed."""
        return f"{self.prefix}processed"

    @cached_property
    def failed(self) -> str:
        """Counter of all failures ever."""
        return f"{self.prefix}failed"

    def task(self, task_id: str) -> str:
        """HASH of a task."""
        return f"{self.task_prefix}{task_id}"

    def group(self, name: str) -> str:
        """ZSET id → added-at of the tasks waiting in a group."""
        return f"{self.group_prefix}{name}"

    def processed_on(self, day: str) -> str:
        """Counter of the tasks processed on a UTC day, ``YYYY-MM-DD``."""
        return f"{self.processed}:{day}"

    def failed_on(self, day: str) -> str:
        """Counter of the failures on a UTC day, ``YYYY-MM-DD``."""
        return f"{self.failed}:{day}"

    def unique(self, task_type: str, payload: bytes) -> str:
        """STRING holding the id that owns the unique lock.

        An empty payload gives an empty digest, as Go's nil payload does; Go's empty non-nil payload, which
        the stored message cannot tell apart from nil, would give the MD5 of nothing (base.UniqueKey).
        """
        digest = hashlib.md5(payload, usedforsecurity=False).hexdigest() if payload else ""
        return f"{self.unique_prefix}{task_type}:{digest}"

    def cron_last(self, entry_id: str) -> str:
        """STRING: the scheduled instant, unix seconds, an entry of ours fired for last."""
        return f"{self.prefix}cron:{entry_id}:last"

    def cron_run(self, entry_id: str) -> str:
        """STRING: the id of the task an entry of ours enqueued last."""
        return f"{self.prefix}cron:{entry_id}:run"

    def cron_since(self, entry_id: str) -> str:
        """STRING: since when, unix seconds, an entry of ours exists with its present spec."""
        return f"{self.prefix}cron:{entry_id}:since"


@lru_cache(maxsize=1024)
def queue_keys(queue: str) -> QueueKeys:
    """Return the keys of ``queue``; cached, as each command asks for them."""
    return QueueKeys(queue)


@dataclass(frozen=True, slots=True)
class ProcessKeys:
    """The keys under which one process is visible to the tools; ``identity`` is ``host:pid:id``."""

    identity: str

    @property
    def server(self) -> str:
        """STRING: encoded ServerInfo."""
        return f"asynq:servers:{{{self.identity}}}"

    @property
    def workers(self) -> str:
        """HASH task id → encoded WorkerInfo."""
        return f"asynq:workers:{{{self.identity}}}"

    @property
    def scheduler(self) -> str:
        """LIST of encoded SchedulerEntry."""
        return f"asynq:schedulers:{{{self.identity}}}"

    @staticmethod
    def workers_of(server_key: str) -> str:
        """Return the key of the workers that belong to the server shown under ``server_key``."""
        return server_key.replace("asynq:servers:", "asynq:workers:", 1)

    @staticmethod
    def history(entry_id: str) -> str:
        """ZSET encoded SchedulerEnqueueEvent → enqueued-at, unix seconds."""
        return f"asynq:scheduler_history:{entry_id}"
