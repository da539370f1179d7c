"""Groups: waiting tasks are gathered in sets, and a set becomes one task (rdb.go: AggregationCheck …)."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Final

import structlog

from junhong_cmp.asynq.aggregation import Aggregation
from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_ack import lock_key
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.enqueue_calls import task_args, task_keys
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import InvalidMessageError, PreparedTask, decode
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg

log = structlog.stdlib.get_logger(__name__)

SET_TIMEOUT: Final = timedelta(minutes=2)
"""How long a set may take to become a task before any server puts its tasks back."""
_GATHER: Final = LuaScript.load("junhong_cmp.asynq", "gather_group")
_COMMIT: Final = LuaScript.load("junhong_cmp.asynq", "_lock", "_enqueue", "commit_group")
_RECLAIM: Final = LuaScript.load("junhong_cmp.asynq", "reclaim_groups")
_QUARANTINE: Final = LuaScript.load("junhong_cmp.asynq", "quarantine_grouped")
_SETS_AT_ONCE: Final = 100


class CommitOutcome(IntEnum):
    """What became of an attempt to turn a set into a task; only COMMITTED wrote anything."""

    COMMITTED = 1
    ID_CONFLICT = 0
    DUPLICATE = -1
    GONE = 2


@dataclass(slots=True)
class GatheredSet:
    """Tasks of one group, set apart under ``key`` until they are committed or put back."""

    queue: str
    group: bytes
    key: bytes
    messages: list[TaskMessage] = field(default_factory=list)

    @classmethod
    def plan(cls, queue: str, group: bytes) -> "GatheredSet":
        """Return a set still to be gathered, under a key no other has."""
        key = b"%b%b:%b" % (queue_keys(queue).group_prefix.encode(), group, str(uuid.uuid4()).encode())
        return cls(queue, group, key)


class Groups:
    """Groups hold tasks that wait to be processed together."""

    def __init__(
        self, redis: RedisClient, max_message_bytes: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._redis = redis
        self.max_message_bytes = max_message_bytes
        self._clock = clock

    async def names(self, queue: str) -> list[bytes]:
        """Return the groups of a queue that have waiting tasks."""
        return list(await self._redis.execute_command("SMEMBERS", queue_keys(queue).groups))

    async def count(self, queue: str) -> int:
        """Return how many groups of a queue have waiting tasks."""
        return int(await self._redis.execute_command("SCARD", queue_keys(queue).groups))

    async def gather(self, gathered: GatheredSet, rules: Aggregation) -> bool:
        """Fill a planned set, if it is time to; False if it is not, or if no task can be used.

        Messages that cannot be decoded go to the archive with the reason.
        """
        keys, now = queue_keys(gathered.queue), int(self._clock())
        args: list[ScriptArg] = [keys.task_prefix, gathered.group, rules.max_size or 0]
        args.append(now - _seconds(rules.max_delay) if rules.max_delay is not None else 0)
        args += (now - _seconds(rules.grace), now + _seconds(SET_TIMEOUT), self.max_message_bytes)
        group_key = keys.group_prefix.encode() + gathered.group
        flat = await _GATHER.run(
            self._redis, [group_key, gathered.key, keys.aggregation_sets, keys.groups], args
        )
        bad: list[tuple[bytes, str]] = []
        for task_id, raw in zip(flat[::2], flat[1::2], strict=True):
            try:
                gathered.messages.append(_decode(raw, task_id, gathered.queue))
            except InvalidMessageError as error:
                bad.append((task_id, str(error)))
        if bad:
            await self._quarantine(gathered, bad)
        return bool(gathered.messages)

    async def commit(self, gathered: GatheredSet, task: PreparedTask) -> CommitOutcome:
        """Enqueue ``task`` in place of the set and its tasks, whose locks are freed.

        Safe to repeat after a lost reply: the set is then GONE.
        """
        keys = queue_keys(gathered.queue)
        script_keys: list[str | bytes] = [gathered.key, keys.aggregation_sets, keys.groups, *task_keys(task)]
        for message in gathered.messages:
            key = keys.task(message.id)
            script_keys += (key, lock_key(keys, message, key))  # Go notes the lock nowhere else
        args: list[ScriptArg] = [keys.prefix, int(self._clock() * 1e9), *task_args(task)]
        args += [message.id for message in gathered.messages]
        return CommitOutcome(await _COMMIT.run(self._redis, script_keys, args))

    async def put_back(self, gathered: GatheredSet) -> int:
        """Put the tasks of a set back into their group at once; return how many."""
        _, tasks = await self._reclaim(gathered.queue, gathered.key)
        return tasks

    async def reclaim(self, queue: str) -> int:
        """Put the tasks of all sets back that were not committed in time; return how many."""
        total = 0
        while True:
            sets, tasks = await self._reclaim(queue, b"")
            total += tasks
            if sets < _SETS_AT_ONCE:
                return total

    async def _reclaim(self, queue: str, only: bytes) -> tuple[int, int]:
        keys = queue_keys(queue)
        sets, tasks = await _RECLAIM.run(
            self._redis,
            [keys.aggregation_sets, keys.groups],
            [keys.prefix, int(self._clock()), _SETS_AT_ONCE, only],
        )
        return int(sets), int(tasks)

    async def _quarantine(self, gathered: GatheredSet, bad: Sequence[tuple[bytes, str]]) -> None:
        keys = queue_keys(gathered.queue)
        hashes = [keys.task_prefix.encode() + task_id for task_id, _ in bad]
        args: list[ScriptArg] = [int(self._clock())]
        for row in bad:
            args += row
        await _QUARANTINE.run(self._redis, [gathered.key, keys.archived, *hashes], args)
        for task_id, reason in bad:
            name = task_id.decode(errors="replace")
            log.warning("任务无法解码，已隔离", queue=gathered.queue, task_id=name, reason=reason)


def _decode(raw: bytes, task_id: bytes, queue: str) -> TaskMessage:
    if not raw:
        raise InvalidMessageError("任务消息过大")
    return decode(raw, task_id=task_id.decode(errors="replace"), queue=queue)


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
