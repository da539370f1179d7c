"""What is waited for, what is not, and what is said meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest
from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs
from tests.waiting import FakeClock

from junhong_cmp.errors import ConfigError, DependencyUnavailableError, ExitCode, SchemaOutdatedError
from junhong_cmp.worker.start_gate import StartGate


def attempts(
    *outcomes: BaseException | str, clock: FakeClock | None = None, step: float = 0.0
) -> Callable[[], Awaitable[str]]:
    """Fail as told, one outcome an attempt; the last one repeats. Each attempt moves the clock."""
    left = list(outcomes)

    async def attempt() -> str:
        if clock is not None:
            clock.advance(step)
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return attempt


async def skip(_seconds: float) -> None:
    await asyncio.sleep(0)


def gate_of(limit: timedelta, clock: FakeClock) -> StartGate:
    return StartGate(limit, clock, sleep=skip)


async def test_what_is_ready_is_not_waited_for(clock: FakeClock) -> None:
    with capture_logs() as logs:
        assert await gate_of(timedelta(0), clock).wait_for("Redis", attempts("PONG")) == "PONG"
    assert logs == []


async def test_waits_until_ready_and_says_so_each_30_seconds(clock: FakeClock) -> None:
    gate = gate_of(timedelta(minutes=5), clock)
    refused = [ConnectionRefusedError("refused")] * 7
    with capture_logs() as logs:
        await gate.wait_for("Redis", attempts(*refused, "PONG", clock=clock, step=10.0))
    assert [record["event"] for record in logs] == ["等待依赖就绪"] * 3
    assert [record["waited_s"] for record in logs] == [10.0, 40.0, 70.0]
    assert logs[0]["dependency"] == "Redis"


async def test_gives_up_at_the_limit_with_69(clock: FakeClock) -> None:
    gate = gate_of(timedelta(seconds=15), clock)
    with pytest.raises(DependencyUnavailableError, match="Redis 在 15 秒内未就绪") as caught:
        await gate.wait_for("Redis", attempts(RedisConnectionError("no route"), clock=clock, step=10.0))
    assert caught.value.exit_code is ExitCode.DEPENDENCY_UNAVAILABLE


async def test_one_limit_for_all_dependencies(clock: FakeClock) -> None:
    gate = gate_of(timedelta(seconds=15), clock)
    await gate.wait_for("Redis", attempts(OSError(), "PONG", clock=clock, step=10.0))
    with pytest.raises(DependencyUnavailableError, match="PostgreSQL"):
        await gate.wait_for("PostgreSQL", attempts(OSError()))


@pytest.mark.parametrize(
    "refusal",
    [
        AuthenticationError("invalid password"),
        ResponseError("NOAUTH Authentication required."),
        ResponseError("AUTH <password> called without any password configured for the default user."),
        RedisConnectionError("invalid username-password pair or user is disabled."),
        asyncpg.InvalidPasswordError("password authentication failed"),
        asyncpg.exceptions.ClientConfigurationError("invalid DSN"),
    ],
)
async def test_refused_credentials_are_not_waited_out(clock: FakeClock, refusal: Exception) -> None:
    with pytest.raises(ConfigError) as caught:
        await gate_of(timedelta(minutes=1), clock).wait_for("Redis", attempts(refusal))
    assert caught.value.exit_code is ExitCode.CONFIGURATION


async def test_a_schema_may_still_come(clock: FakeClock) -> None:
    gate = gate_of(timedelta(minutes=1), clock)
    late = attempts(SchemaOutdatedError("空库"), "ok", clock=clock, step=1.0)
    assert await gate.wait_for("PostgreSQL 库表", late) == "ok"


async def test_a_schema_that_does_not_come_is_78(clock: FakeClock) -> None:
    gate = gate_of(timedelta(seconds=5), clock)
    with pytest.raises(SchemaOutdatedError) as caught:
        await gate.wait_for("PostgreSQL 库表", attempts(SchemaOutdatedError("空库"), clock=clock, step=10.0))
    assert caught.value.exit_code is ExitCode.CONFIGURATION


async def test_an_unforeseen_error_is_not_swallowed(clock: FakeClock) -> None:
    with pytest.raises(ZeroDivisionError):
        await gate_of(timedelta(minutes=1), clock).wait_for("Redis", attempts(ZeroDivisionError()))


async def test_a_hanging_attempt_is_cut_off(clock: FakeClock) -> None:
    async def hang() -> None:
        clock.advance(60.0)
        await asyncio.Event().wait()

    gate = gate_of(timedelta(seconds=0.01), clock)
    with pytest.raises(DependencyUnavailableError):
        await gate.wait_for("Redis", hang)


async def test_waiting_can_be_cancelled(clock: FakeClock) -> None:
    gate = StartGate(timedelta(minutes=5), clock)
    waiting = asyncio.create_task(gate.wait_for("Redis", attempts(OSError())))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
