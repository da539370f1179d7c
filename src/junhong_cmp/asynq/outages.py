"""Redis being away: how to tell, how long to wait, what to say."""

import random
import time
from collections.abc import Callable
from datetime import timedelta

import structlog
from redis import exceptions

log = structlog.stdlib.get_logger(__name__)

FAULTS: tuple[type[Exception], ...] = (
    exceptions.RedisError,
    exceptions.RedisClusterException,  # not a RedisError: no node of the cluster could be reached
    OSError,
    TimeoutError,
)
"""What a Redis command may raise for reasons outside this program."""

_PASSING_ERRORS = (
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.NoPermissionError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)
"""Replies that redis-py knows by class; it takes their code out of the text."""
_PASSING_CODES = (
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "OOM",
    "NOREPLICAS",
    "NOAUTH",
    "NOPERM",
    "ACL failure",  # NOPERM of a script's command, since Redis 7
    "MISCONF",
    "UNKILLABLE",
)
_ERROR_TEXT_LIMIT = 200
_LONGEST_SILENCE_S = 300.0


def is_outage(error: BaseException) -> bool:
    """Say whether ``error`` is about Redis as a whole, so that it passes and no single task is to blame."""
    if isinstance(error, exceptions.ResponseError):
        text = str(error)
        return isinstance(error, _PASSING_ERRORS) or any(code in text for code in _PASSING_CODES)
    return isinstance(error, FAULTS)


class Backoff:
    """A back-off gives growing waits with jitter, so that many processes do not come back at one moment."""

    def __init__(self, cap: timedelta, first: timedelta = timedelta(milliseconds=100)) -> None:
        self._cap = cap.total_seconds()
        self._first = min(first.total_seconds(), self._cap)
        self._next = self._first

    def next_delay(self) -> float:
        """Return the seconds to wait before the next attempt, at most the cap."""
        bound = self._next
        self._next = min(self._next * 2, self._cap)
        return random.uniform(bound / 2, bound)

    def reset(self) -> None:
        """Begin again with short waits, after an attempt has worked."""
        self._next = self._first


class OutageLog:
    """An outage log says when a duty begins to fail, again ever more seldom, and when it works again."""

    def __init__(
        self,
        duty: str,
        repeat: timedelta = timedelta(seconds=10),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._duty = duty
        self._first_silence = self._silence = repeat.total_seconds()
        self._clock = clock
        self._attempts = 0
        self._since = 0.0
        self._told_at = 0.0

    def failed(self, error: BaseException) -> None:
        """Note one failed attempt; warn if it is the first or the last warning is old."""
        now = self._clock()
        self._attempts += 1
        if self._attempts == 1:
            self._since, self._silence = now, self._first_silence
        elif now - self._told_at < self._silence:
            return
        else:
            self._silence = min(self._silence * 2, _LONGEST_SILENCE_S)
        self._told_at = now
        text = str(error)[:_ERROR_TEXT_LIMIT]
        log.warning(
            "Redis 操作失败，将自动重试",
            duty=self._duty,
            attempts=self._attempts,
            error_type=type(error).__name__,
            **({"error": text} if text else {}),
        )

    def worked(self) -> None:
        """Note one attempt that worked; says so if it ends an outage."""
        if self._attempts:
            outage_s = round(self._clock() - self._since, 3)
            log.info("Redis 操作已恢复", duty=self._duty, attempts=self._attempts, outage_s=outage_s)
            self._attempts = 0
