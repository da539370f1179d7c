"""Waiting for what a worker needs, from the start of the process until the start limit."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

import asyncpg
import structlog
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException, RedisError

from junhong_cmp.clock import Clock
from junhong_cmp.errors import ConfigError, DependencyUnavailableError, SchemaOutdatedError

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

LOG_EVERY: Final = timedelta(seconds=30)
ATTEMPT_LIMIT: Final = timedelta(seconds=5)
FIRST_PAUSE: Final = timedelta(milliseconds=100)
LONGEST_PAUSE: Final = timedelta(seconds=2)

# The credentials are wrong: waiting would not make them right.
_REFUSED: Final = (
    AuthenticationError,
    NoPermissionError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
# The service is not there yet, or not ready yet.
_NOT_READY: Final = (
    OSError,
    TimeoutError,
    RedisError,
    RedisClusterException,  # no subclass of RedisError
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
)

# No credentials were given, wrong ones, or some to a server that knows none.
_REFUSAL_SIGNS: Final = ("NOAUTH", "username-password pair", "AUTH <password> called without")


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
            except _REFUSED as error:
                raise _refused(dependency, error) from error
            except asyncpg.exceptions.ClientConfigurationError as error:
                raise ConfigError([f"{dependency} 的连接串无效（{_reason(error)}）"]) from error
            except SchemaOutdatedError as error:
                if self._left() <= 0:
                    raise
                reason = str(error)
            except _NOT_READY as error:
                if _is_refusal(error):
                    raise _refused(dependency, error) from error
                if self._left() <= 0:
                    raise self._unavailable(dependency, error) from error
                reason = _reason(error)
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
            f"{dependency} 在 {seconds} 秒内未就绪（{_reason(error)}），请检查地址与服务；"
            "时限由 JUNHONG_START_LIMIT 设置"
        )


def _refused(dependency: str, error: BaseException) -> ConfigError:
    return ConfigError([f"{dependency} 拒绝登录（{_reason(error)}），请检查连接地址中的账号与密码"])


def _is_refusal(error: BaseException) -> bool:
    """Tell a refused login from an outage where redis-py has no class of its own for it."""
    return isinstance(error, RedisError) and any(sign in str(error) for sign in _REFUSAL_SIGNS)


def _reason(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}：{text}" if text else type(error).__name__
