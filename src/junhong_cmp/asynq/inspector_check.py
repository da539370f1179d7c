"""The check of a queue: everything in it held against everything else, and mended if asked to.

What it finds comes from evictions, failovers, scripts that broke off, keys deleted by hand, and from the
places where Go leaks: hashes of trimmed tasks, locks of tasks deleted in bulk.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import structlog

from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.inspector_errors import QueueNotFoundError
from junhong_cmp.asynq.inspector_places import place_args, place_keys
from junhong_cmp.asynq.inspector_scan import scan_keys
from junhong_cmp.asynq.keys import ALL_QUEUES, queue_keys
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg

log = structlog.stdlib.get_logger(__name__)

_PLACE: Final = LuaScript.load("junhong_cmp.asynq", "_places", "check_place")
_TASKS: Final = LuaScript.load("junhong_cmp.asynq", "_places", "_message", "_lock", "_forget", "check_tasks")
_GROUPS: Final = LuaScript.load("junhong_cmp.asynq", "_places", "check_groups")
_LOCKS: Final = LuaScript.load("junhong_cmp.asynq", "check_locks")
_AT_ONCE: Final = 200
_EXAMPLES: Final = 20
_PLACES: Final = ("active", "lease", "pending", "scheduled", "retry", "archived", "completed")
_PLACE_TYPES: Final = (b"list", b"list", b"zset", b"zset", b"zset", b"zset", b"zset", b"set", b"zset")
_TIME_LOST: Final = "定时时刻已丢失"
_STATE_UNKNOWN: Final = "任务状态未知"


class Fault(StrEnum):
    """What can be wrong.

    ``ghost``: an id without a task. ``misplaced``: an id where its task's state says it is not. ``orphan``: a
    task nothing holds. ``stub``: a task key without a message. ``stale_lock``: a lock whose holder is gone.
    ``stale_aggregation_set``: an aggregation nobody works on any more. ``foreign``: a key of a type the
    protocol does not give it. The others as they say.
    """

    GHOST = "ghost"
    MISPLACED = "misplaced"
    ORPHAN = "orphan"
    STUB = "stub"
    FOREIGN = "foreign"
    ACTIVE_WITHOUT_LEASE = "active_without_lease"
    LEASE_WITHOUT_ACTIVE = "lease_without_active"
    STALE_LOCK = "stale_lock"
    STALE_AGGREGATION_SET = "stale_aggregation_set"
    EMPTY_GROUP = "empty_group"
    UNLISTED_GROUP = "unlisted_group"
    UNLISTED_QUEUE = "unlisted_queue"


class Remedy(StrEnum):
    """What is done about a fault; ``kept``: nothing, an operator must look.

    ``archived`` is for tasks that nobody can say when to run; ``recovering`` ones go to the next recovery.
    """

    DROPPED = "dropped"
    ADOPTED = "adopted"
    DELETED = "deleted"
    REQUEUED = "requeued"
    RECOVERING = "recovering"
    RESTORED = "restored"
    ARCHIVED = "archived"
    LEASED = "leased"
    LISTED = "listed"
    KEPT = "kept"


class Finding(NamedTuple):
    """One thing that is wrong: what, with which task or key, and what is done about it."""

    fault: Fault
    subject: str
    remedy: Remedy


@dataclass(slots=True)
class CheckReport:
    """What a check found; nothing was changed unless ``repaired``. ``examples`` are up to 20 a fault."""

    queue: str
    repaired: bool
    counts: Counter[Fault] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All faults together."""
        return self.counts.total()

    def add(self, flat: Sequence[Any]) -> None:
        """Take in the findings of a script: fault, subject, remedy and so on."""
        for start in range(0, len(flat), 3):
            fault, subject, remedy = (part.decode(errors="replace") for part in flat[start : start + 3])
            self.counts[Fault(fault)] += 1
            if self.counts[Fault(fault)] <= _EXAMPLES:
                self.examples.append(Finding(Fault(fault), subject, Remedy(remedy)))


class QueueCheck:
    """A queue check goes through one queue once, while it is in use, a few hundred keys a step."""

    def __init__(
        self,
        redis: RedisClient,
        queue: str,
        *,
        repair: bool,
        archive: ArchiveLimits,
        clock: Callable[[], float],
    ) -> None:
        self._redis = redis
        self._keys = queue_keys(queue)
        self._places = place_keys(self._keys)
        self._archive = archive
        self._clock = clock
        self._pending: set[bytes] = set()
        self._settled: set[bytes] = set()
        self._groups: set[bytes] = set()
        self._report = CheckReport(queue, repaired=repair)

    async def run(self) -> CheckReport:
        """Check, and mend if asked to; :class:`QueueNotFoundError` if there is nothing of the queue."""
        await self._check_registration()
        if await self._has_foreign_places():
            return self._report
        for place in _PLACES:
            await self._check_place(place)
        await self._check_groups(
            await self._redis.execute_command("ZRANGE", self._keys.aggregation_sets, 0, -1)
        )
        async for found in scan_keys(self._redis, self._keys.group_prefix):
            await self._check_groups(found)
        for group in sorted(await self._redis.execute_command("SMEMBERS", self._keys.groups)):
            await self._check_groups([self._keys.group_prefix.encode() + group])
            await self._check_place("aggregating", group)
        async for found in scan_keys(self._redis, self._keys.prefix):
            await self._check_tasks(found)
            await self._check_locks(found)
        if self._report.repaired and self._report.total:
            counts = {fault.value: count for fault, count in self._report.counts.items()}
            log.warning("队列中的不一致已修复", queue=self._report.queue, **counts)
        return self._report

    async def _check_registration(self) -> None:
        queue = self._report.queue
        if await self._redis.execute_command("SISMEMBER", ALL_QUEUES, queue):
            return
        if not await self._redis.execute_command("EXISTS", *self._places):
            raise QueueNotFoundError(queue)
        self._report.add([Fault.UNLISTED_QUEUE.encode(), queue.encode(), Remedy.LISTED.encode()])
        if self._report.repaired:
            await self._redis.execute_command("SADD", ALL_QUEUES, queue)

    async def _has_foreign_places(self) -> bool:
        """Tell of places of a wrong type: with one of them nothing in the queue can be judged."""
        pipe = self._redis.pipeline(transaction=False)
        for key in self._places:
            pipe.execute_command("TYPE", key)
        kinds = await pipe.execute()
        for key, kind, right in zip(self._places, kinds, _PLACE_TYPES, strict=True):
            if kind not in {right, b"none"}:
                self._report.add([Fault.FOREIGN.encode(), key.encode(), Remedy.KEPT.encode()])
        return bool(self._report.counts[Fault.FOREIGN])

    async def _check_place(self, place: str, group: bytes = b"") -> None:
        first = 0
        while True:
            last = first + _AT_ONCE - 1
            if place == "pending":
                ids = await self._redis.execute_command("LRANGE", self._keys.pending, first, last)
                self._pending.update(ids)
            args = [*self._args(), place, group, first, last]
            seen, removed, findings = await _PLACE.run(self._redis, self._places, args)
            self._report.add(findings)
            # Told and, when mending, settled; the search for orphans must not tell of it once more.
            for fault, subject, remedy in zip(findings[::3], findings[1::3], findings[2::3], strict=True):
                if fault == Fault.GHOST.encode() or remedy == Remedy.ADOPTED.encode():
                    self._settled.add(subject)
            first += seen - removed
            if seen == 0:
                return

    async def _check_tasks(self, found: Sequence[bytes]) -> None:
        prefix = self._keys.task_prefix.encode()
        ids = [key.removeprefix(prefix) for key in found if key.startswith(prefix)]
        ids = [task_id for task_id in ids if task_id not in self._settled]
        archived_until = int(self._clock() - self._archive.age.total_seconds())
        start = 0
        while start < len(ids):
            args = [*self._args(), archived_until, self._archive.size, _TIME_LOST, _STATE_UNKNOWN]
            for task_id in ids[start : start + _AT_ONCE]:
                args += (task_id, int(task_id in self._pending))
            seen, findings = await _TASKS.run(self._redis, self._places, args)
            self._report.add(findings)
            start += seen

    async def _check_locks(self, found: Sequence[bytes]) -> None:
        prefix = self._keys.unique_prefix.encode()
        locks = [key for key in found if key.startswith(prefix)]
        for start in range(0, len(locks), _AT_ONCE):
            args: list[ScriptArg] = [self._keys.task_prefix, int(self._report.repaired)]
            self._report.add(await _LOCKS.run(self._redis, locks[start : start + _AT_ONCE], args))

    async def _check_groups(self, keys: Sequence[bytes]) -> None:
        """Check groups and aggregation sets, each once: mended or only told, it must not be told again."""
        keys = [key for key in keys if key not in self._groups]
        start = 0
        while start < len(keys):
            args = [*self._args(), _AT_ONCE, *keys[start : start + _AT_ONCE]]
            seen, findings = await _GROUPS.run(self._redis, self._places, args)
            self._report.add(findings)
            for fault, key in zip(findings[::3], findings[1::3], strict=True):
                if fault == Fault.STALE_AGGREGATION_SET.encode():
                    self._settled.update(await self._redis.execute_command("ZRANGE", key, 0, -1))
            start += seen
        self._groups.update(keys)

    def _args(self) -> list[ScriptArg]:
        return [*place_args(self._keys, self._clock()), int(self._report.repaired)]
