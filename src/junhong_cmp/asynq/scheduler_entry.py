"""One cron entry at work: when it is due, what is enqueued, what is remembered."""

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import structlog

from junhong_cmp.asynq.asynq_pb2 import SchedulerEntry
from junhong_cmp.asynq.broker_presence import register_queues
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.cron import CronSchedule
from junhong_cmp.asynq.enqueue_calls import task_args, task_keys
from junhong_cmp.asynq.errors import InvalidTaskError
from junhong_cmp.asynq.go_text import format_options
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import check, prepare
from junhong_cmp.asynq.misfire import MisfirePolicy, Step, plan
from junhong_cmp.asynq.scheduler_view import SchedulerView, timestamp
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.asynq.task import EnqueueOptions, Task

log = structlog.stdlib.get_logger(__name__)

_FIRE: Final = LuaScript.load("junhong_cmp.asynq", "_enqueue", "cron_fire")
_ENQUEUED: Final = 1
_SETTLED_BEFORE: Final = 2
_OVERLAP: Final = 4
_DUPLICATE: Final = -1
_MOST_RUNS_AT_ONCE: Final = 100
_CLOCK_AHEAD_S: Final = 600
"""A last run further in the future than any honest skew stems from a clock that ran ahead: not believed."""


class OverlapPolicy(StrEnum):
    """SKIP: no run while the task of the previous one has not ended, its retries included. ALLOW: run."""

    SKIP = "跳过"
    ALLOW = "允许"


@dataclass(frozen=True)
class CronEntry:
    """A periodic task. ``id`` names it for ever: its history and last run hang on it.

    With ``jitter`` each run is processed a random time up to that later, so that many entries of one instant
    do not all start at once.
    """

    id: str
    spec: str
    task: Task
    options: EnqueueOptions = field(default_factory=EnqueueOptions)
    misfire: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    grace: timedelta = timedelta(hours=1)
    overlap: OverlapPolicy = OverlapPolicy.ALLOW
    jitter: timedelta = timedelta(0)


class ScheduledEntry:
    """A scheduled entry fires one cron entry, agreeing through Redis with all other schedulers."""

    def __init__(
        self, redis: RedisClient, entry: CronEntry, schedule: CronSchedule, view: SchedulerView
    ) -> None:
        if not entry.id.strip():
            raise InvalidTaskError("定时任务的条目编号不能为空")
        if entry.options.task_id is not None:
            raise InvalidTaskError("定时任务不能指定任务编号：它由条目与计划时间得出")
        if entry.jitter < timedelta(0) or (entry.jitter and entry.options.process_at is not None):
            raise InvalidTaskError("定时任务的抖动不能为负，也不能与执行时刻同用")
        check(entry.task, entry.options)
        self._redis = redis
        self._entry = entry
        self._schedule = schedule
        self._view = view
        self._keys = queue_keys(entry.options.queue)
        self._settled: float | None = None
        self._previous: int | None = None
        self.next_due = 0.0

    @property
    def entry(self) -> CronEntry:
        """The entry as it was given."""
        return self._entry

    async def forget(self) -> None:
        """Forget since when the entry exists: should it come back, it has missed nothing meanwhile."""
        await self._redis.execute_command("DEL", self._keys.cron_since(self._entry.id))

    async def fire_due(self, now: float) -> None:
        """Enqueue what is due at ``now`` and was not settled by any scheduler."""
        if self._settled is not None and self._settled <= now + _CLOCK_AHEAD_S and now < self.next_due:
            return
        settled = await self._settled_until(now)
        due = self._schedule.due(_instant(settled), _instant(now), _MOST_RUNS_AT_ONCE)
        for step in plan([int(run.timestamp()) for run in due], now, self._entry.misfire, self._entry.grace):
            await self._take(step, now)
            settled = step.instant
        self._settled = settled
        self.next_due = self._schedule.next_after(_instant(max(settled, now))).timestamp()

    def describe(self, now: float) -> SchedulerEntry:
        """Return what the tools show of this entry."""
        return SchedulerEntry(
            id=self._entry.id,
            spec=self._entry.spec,
            task_type=self._entry.task.type,
            task_payload=self._entry.task.payload,
            enqueue_options=format_options(self._entry.options),
            next_enqueue_time=timestamp(self._schedule.next_after(_instant(now)).timestamp()),
            prev_enqueue_time=timestamp(self._previous),
        )

    async def _settled_until(self, now: float) -> float:
        """Return the instant (unix s) up to which nothing is to be fired any more.

        That is the last run any scheduler settled, or else the time the entry was first seen with its present
        spec: a new or changed entry, or one whose Redis was flushed, has missed nothing.
        """
        last_key, since_key = self._keys.cron_last(self._entry.id), self._keys.cron_since(self._entry.id)
        last_raw, since_raw = await self._redis.execute_command("MGET", last_key, since_key)
        since_text, _, spec = (since_raw or b"").decode(errors="replace").partition(" ")
        if spec == self._entry.spec and since_text.isdecimal():
            since = int(since_text)
        else:
            await self._redis.execute_command("SET", since_key, f"{int(now)} {self._entry.spec}")
            since = int(now) if self._settled is None else 0
        last = int(last_raw) if last_raw is not None and last_raw.isdigit() else None
        self._previous = last
        own = self._settled
        if all(at is None or at <= now + _CLOCK_AHEAD_S for at in (last, own)):
            return max(at for at in (last, since, own) if at is not None)
        # A clock ran ahead and was set back. Which runs were made before is unknown: none is made up.
        return own if own is not None and own <= now + _CLOCK_AHEAD_S else now

    async def _take(self, step: Step, now: float) -> None:
        """Settle one step, unless another scheduler did; only the one that did reports and records."""
        entry = self._entry
        task_id = f"cron:{entry.id}:{step.instant}"
        prepared = prepare(entry.task, self._options(task_id), now)
        if step.fire:
            await register_queues(self._redis, [entry.options.queue])
        head = [step.instant, int(now) + _CLOCK_AHEAD_S, int(now * 1e9), int(step.fire)]
        outcome = await _FIRE.run(
            self._redis,
            [
                self._keys.cron_last(entry.id),
                self._keys.groups,
                *task_keys(prepared),
                self._keys.cron_run(entry.id),
            ],
            [
                *head,
                *task_args(prepared),
                self._keys.task_prefix if entry.overlap is OverlapPolicy.SKIP else "",
            ],
        )
        if outcome == _SETTLED_BEFORE:
            return
        for instant in step.missed:
            log.warning(
                "定时任务错过",
                entry=entry.id,
                scheduled=_iso(instant),
                policy=entry.misfire.value,
            )
        if outcome == _ENQUEUED:
            self._previous = step.instant
            await self._view.record(entry.id, task_id, now)
            log.debug("定时任务已入队", entry=entry.id, task_id=task_id)
        elif outcome == _OVERLAP:
            log.info("定时任务跳过：上一次运行尚未结束", entry=entry.id, scheduled=_iso(step.instant))
        elif outcome == _DUPLICATE:
            log.info("定时任务未入队：相同任务还在队列中", entry=entry.id, task_id=task_id)

    def _options(self, task_id: str) -> EnqueueOptions:
        options, jitter = self._entry.options, self._entry.jitter
        if not jitter:
            return replace(options, task_id=task_id)
        delay = (options.process_in or timedelta(0)) + jitter * random.random()
        return replace(options, task_id=task_id, process_in=delay)


def _iso(unix_s: float) -> str:
    return _instant(unix_s).isoformat()


def _instant(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)
