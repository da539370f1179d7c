"""Periodic tasks whose set changes while the scheduler runs (periodic_task_manager.go)."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, timedelta, tzinfo
from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.outages import Backoff
from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.asynq.scheduler_entry import CronEntry

log = structlog.stdlib.get_logger(__name__)

EntryProvider = Callable[[], Sequence[CronEntry] | Awaitable[Sequence[CronEntry]]]
"""Returns all entries there are now. A coroutine function runs on the event loop, a plain one on a thread."""
_FIRST_RETRY: Final = timedelta(seconds=1)
_ERROR_TEXT_LIMIT: Final = 200


class PeriodicTaskManager:
    """A periodic task manager asks a provider for cron entries again and again, and schedules these.

    Entries that are as before keep what they remember, changed ones replace theirs under the same id, and one
    that went and comes back has missed nothing meanwhile. A provider that fails leaves the old set in force.
    Any number of managers may run: each instant of an entry fires once over all of them.
    """

    def __init__(
        self,
        redis: RedisClient,
        provider: EntryProvider,
        *,
        sync_interval: timedelta = timedelta(minutes=3),
        tz: tzinfo = UTC,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._provider = provider
        self._sync_interval_s = sync_interval.total_seconds()
        self._retry = Backoff(sync_interval, first=_FIRST_RETRY)
        self._scheduler = Scheduler(redis, (), tz=tz, clock=clock)
        self._refused: dict[str, str] = {}
        self._syncing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ask and to fire; waits neither for the provider nor for Redis."""
        await self._scheduler.start()
        self._syncing = asyncio.create_task(self._run(), name="asynq-periodic-sync")

    async def stop(self) -> None:
        """Ask and fire no more; what fired last stays known, so that a successor goes on from there."""
        if self._syncing is not None:
            await end_tasks([self._syncing])
        await self._scheduler.stop()

    async def _run(self) -> None:
        while True:
            if await self._sync():
                self._retry.reset()
                await asyncio.sleep(self._sync_interval_s)
            else:
                await asyncio.sleep(self._retry.next_delay())

    async def _sync(self) -> bool:
        """Take over what the provider says now; False if it failed."""
        try:
            changes = self._scheduler.replace_entries(await self._provide())
        except Exception as error:  # noqa: BLE001 - the provider is the caller's: whatever it raises is told
            log.warning(
                "定时任务来源出错，沿用现有条目",
                error_type=type(error).__name__,
                error=str(error)[:_ERROR_TEXT_LIMIT],
            )
            return False
        if changes.added or changes.removed:
            log.info("定时任务条目已更新", added=changes.added, removed=changes.removed)
        for name, reason in changes.refused.items():
            if self._refused.get(name) != reason:  # else it was told before
                log.error("定时任务条目无效，已跳过", entry=name, reason=reason)
        self._refused = changes.refused
        return True

    async def _provide(self) -> Sequence[CronEntry]:
        on_loop: bool = inspect.iscoroutinefunction(self._provider)
        answer = self._provider() if on_loop else await asyncio.to_thread(self._provider)
        return await answer if inspect.isawaitable(answer) else answer
