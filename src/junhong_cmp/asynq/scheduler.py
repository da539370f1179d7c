"""The scheduler enqueues tasks by cron entries, each scheduled instant at most once over all schedulers.

Asynq's own scheduler fires once a process and forgets everything at its end. Here the last instant fired
for is stored in the same script as the task, so any number of schedulers may run, and runs missed while none
did are dealt with by a policy.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import Final, NamedTuple

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.cron import CronSchedule, InvalidCronError
from junhong_cmp.asynq.errors import InvalidTaskError
from junhong_cmp.asynq.misfire import MisfirePolicy
from junhong_cmp.asynq.outages import FAULTS, is_outage
from junhong_cmp.asynq.scheduler_entry import CronEntry, OverlapPolicy, ScheduledEntry
from junhong_cmp.asynq.scheduler_view import SchedulerView

__all__ = ["CronEntry", "EntryChanges", "MisfirePolicy", "OverlapPolicy", "Scheduler"]

log = structlog.stdlib.get_logger(__name__)

_BEAT_S: Final = 10.0
_LONGEST_SLEEP_S: Final = 1.0
"""The wall clock may jump under a sleeping scheduler."""
_FIRST_BACKOFF_S: Final = 0.25
_LONGEST_BACKOFF_S: Final = 5.0


class EntryChanges(NamedTuple):
    """What a change of entries did: how many came and went, and why which (by id) were refused.

    A changed entry came and went.
    """

    added: int
    removed: int
    refused: dict[str, str]


class Scheduler:
    """A scheduler enqueues the task ``cron:<entry>:<scheduled unix seconds>`` at each instant of an entry.

    ``clock`` gives unix seconds. ``may_fire`` is asked before each entry, e.g. whether this process still
    leads. Redis may be away at start and at any later time: nothing is lost, what was due meanwhile is then
    treated as late.
    """

    def __init__(
        self,
        redis: RedisClient,
        entries: Sequence[CronEntry],
        *,
        tz: tzinfo = UTC,
        clock: Callable[[], float] = time.time,
        may_fire: Callable[[], bool] = lambda: True,
    ) -> None:
        """Check all entries.

        Raises:
            InvalidCronError: a spec is wrong.
            InvalidTaskError: a task, its options or an id is wrong.

        """
        _check_ids(entries)
        self._redis = redis
        self._tz = tz
        self._clock = clock
        self._may_fire = may_fire
        self._view = SchedulerView(redis)
        self._entries = [self._make(entry) for entry in entries]
        self._retired: list[ScheduledEntry] = []
        self._spoiled: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._next_beat = 0.0

    def replace_entries(self, entries: Sequence[CronEntry]) -> EntryChanges:
        """Go on with other entries; those that are as before are left alone, with all they remember.

        A faulty entry is left out and stands in the answer.

        Raises:
            InvalidTaskError: two entries have one id; nothing was changed.

        """
        _check_ids(entries)
        before = {scheduled.entry.id: scheduled for scheduled in self._entries}
        after: dict[str, ScheduledEntry] = {}
        refused: dict[str, str] = {}
        for entry in entries:
            known = before.get(entry.id)
            try:
                same = known is not None and known.entry == entry
                after[entry.id] = known if known is not None and same else self._make(entry)
            except (InvalidCronError, InvalidTaskError) as error:
                refused[entry.id] = str(error)
        self._retired += [scheduled for name, scheduled in before.items() if name not in after]
        self._entries = list(after.values())
        self._next_beat = 0.0
        kept = sum(before.get(name) is scheduled for name, scheduled in after.items())
        return EntryChanges(len(after) - kept, len(before) - kept, refused)

    async def start(self) -> None:
        """Begin to fire; does not wait for Redis."""
        if self._task is not None:
            raise RuntimeError("定时调度器已启动")
        self._stopping.clear()
        self._next_beat = 0.0
        self._task = asyncio.create_task(self._run(), name="asynq-scheduler")

    async def stop(self) -> None:
        """End after the run being enqueued, if any; hides this scheduler's entries, keeps all else."""
        if self._task is None:
            return
        self._stopping.set()
        task, self._task = self._task, None
        await task
        try:
            await self._view.clear()
        except FAULTS as error:
            log.warning("定时调度器的登记未能清除，将自行过期", error=str(error))

    async def _run(self) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while not self._stopping.is_set():
            try:
                pause_s = await self._turn()
                backoff_s = _FIRST_BACKOFF_S
            except FAULTS as error:
                log.warning("定时调度暂时无法访问 Redis", error=str(error), retry_in_s=backoff_s)
                pause_s = backoff_s * random.uniform(0.5, 1.0)
                backoff_s = min(backoff_s * 2, _LONGEST_BACKOFF_S)
            try:
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    async def _turn(self) -> float:
        """Fire what is due, show the entries when it is time to, and return how long to sleep."""
        now = self._clock()
        while self._retired:
            await self._retired[-1].forget()
            self._retired.pop()
        for entry in self._entries:
            if self._stopping.is_set():
                break
            if not self._may_fire():
                return _LONGEST_SLEEP_S
            await self._fire(entry, now)
        if time.monotonic() >= self._next_beat:
            await self._view.show([entry.describe(now) for entry in self._entries], now)
            self._next_beat = time.monotonic() + _BEAT_S
        next_due = min(
            (entry.next_due for entry in self._entries if entry.entry.id not in self._spoiled),
            default=now + _LONGEST_SLEEP_S,
        )
        return min(max(next_due - self._clock(), 0.0), _LONGEST_SLEEP_S)

    async def _fire(self, scheduled: ScheduledEntry, now: float) -> None:
        """Let one entry fire; one whose keys, or queue, somebody spoiled does not keep the others from it."""
        name = scheduled.entry.id
        try:
            await scheduled.fire_due(now)
        except FAULTS as error:
            if is_outage(error):
                raise
            if self._spoiled.get(name) != str(error):  # else it was told before
                log.exception("定时任务条目无法触发，稍后重试", entry=name)
            self._spoiled[name] = str(error)
        else:
            self._spoiled.pop(name, None)

    def _make(self, entry: CronEntry) -> ScheduledEntry:
        return ScheduledEntry(self._redis, entry, CronSchedule(entry.spec, tz=self._tz), self._view)


def _check_ids(entries: Sequence[CronEntry]) -> None:
    if len({entry.id for entry in entries}) != len(entries):
        raise InvalidTaskError("定时任务的条目编号重复")
