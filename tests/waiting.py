"""Waiting for a condition instead of sleeping."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05


async def wait_until(
    predicate: Callable[[], object] | Callable[[], Awaitable[object]],
    *,
    timeout: float = 10.0,  # noqa: ASYNC109 - the failure must name what was waited for
    description: str,
) -> None:
    """Return once ``predicate`` (sync or async) is truthy; fail, naming it, after ``timeout`` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    pause = _FIRST_PAUSE_S
    while True:
        outcome = predicate()
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if outcome:
            return
        if loop.time() >= deadline:
            message = f"not within {timeout:g} s: {description}"
            raise AssertionError(message)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


class FakeClock:
    """A fake clock stands still until a test moves it; both readings move together."""

    def __init__(self, start: datetime = datetime(2026, 3, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic = 1_000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def time(self) -> float:
        """Unix seconds, for code that takes ``time.time``."""
        return self._now.timestamp()

    def advance(self, step: timedelta | float) -> None:
        """Move forward by a duration (a float counts seconds)."""
        delta = step if isinstance(step, timedelta) else timedelta(seconds=step)
        self._now += delta
        self._monotonic += delta.total_seconds()
