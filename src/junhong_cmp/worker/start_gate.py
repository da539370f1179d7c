"""Waiting for what a worker needs, from the start of the process until the start limit."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from junhong_cmp.clock import Clock
from junhong_cmp.errors import DependencyUnavailableError, SchemaOutdatedError
from junhong_cmp.worker.service_faults import SERVICE_ERRORS, configuration_fault, reason_of

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

LOG_EVERY: Final = timedelta(seconds=30)
ATTEMPT_LIMIT: Final = timedelta(seconds=5)
FIRST_PAUSE: Final = timedelta(milliseconds=100)
LONGEST_PAUSE: Final = timedelta(seconds=2)


class StartGate:
    """A start gate tries each dependency with a growing, jittered pause until the start limit.

    One limit covers all dependencies together. A missing schema is waited for as well: somebody may be
    migrating right now.
    """

    def __init__(
        self,
        limit: timedelta,
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._sleep = sleep
        self._began = clock.monotonic()
        self._deadline = self._began + limit.total_seconds()

    async def wait_for(self, dependency: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what ``attempt`` returns once it succeeds.

        Raises:
            ConfigError: the service refuses the configured credentials.
            SchemaOutdatedError: the schema was still not there at the limit.
            DependencyUnavailableError: the service was still not ready at the limit.

        """
        pause = FIRST_PAUSE
        next_log = self._began
        while True:
            try:
                async with asyncio.timeout(min(ATTEMPT_LIMIT.total_seconds(), max(self._left(), 0.5))):
                    return await attempt()
            except SchemaOutdatedError as error:
                if self._left() <= 0:
                    raise
                reason = str(error)
            except SERVICE_ERRORS as error:
                if (fault := configuration_fault(dependency, error)) is not None:
                    raise fault from error
                if self._left() <= 0:
                    raise self._unavailable(dependency, error) from error
                reason = reason_of(error)
            next_log = self._report(dependency, reason, next_log)
            await self._sleep(min(pause.total_seconds() * random.uniform(0.8, 1.2), max(self._left(), 0)))
            pause = min(pause * 2, LONGEST_PAUSE)

    def _left(self) -> float:
        return self._deadline - self._clock.monotonic()

    def _report(self, dependency: str, reason: str, next_log: float) -> float:
        now = self._clock.monotonic()
        if now < next_log:
            return next_log
        log.warning(
            "等待依赖就绪",
            dependency=dependency,
            reason=reason,
            waited_s=round(now - self._began, 1),
            remaining_s=round(max(self._left(), 0), 1),
        )
        return now + LOG_EVERY.total_seconds()

    def _unavailable(self, dependency: str, error: BaseException) -> DependencyUnavailableError:
        seconds = f"{self._limit.total_seconds():g}"
        return DependencyUnavailableError(
            f"{dependency} 在 {seconds} 秒内未就绪（{reason_of(error)}），请检查地址与服务；"
            "时限由 JUNHONG_START_LIMIT 设置"
        )
