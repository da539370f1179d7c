"""All workers go by the time of Redis, however wrong the machines they run on are."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.faultproxy import FaultProxy
from tests.gateway.clients import ACCOUNT, CARD, CREDENTIAL, gateway_for
from tests.waiting import FakeClock, wait_until

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.tuning import GatewayTuning
from junhong_cmp.polling.shared_clock import SharedClock

HOUR = timedelta(hours=1)
CLOSE = timedelta(seconds=2)
TICK = timedelta(milliseconds=10)


class Skewed(SystemClock):
    """A machine whose clock is wrong."""

    def __init__(self, skew: timedelta) -> None:
        self.skew = skew

    def now(self) -> datetime:
        return super().now() + self.skew


def difference(clock: SharedClock) -> timedelta:
    return abs(clock.now() - datetime.now(UTC))


@pytest.mark.parametrize("skew", [-HOUR, HOUR, timedelta(days=400), timedelta()])
async def test_it_shows_the_time_of_redis_on_a_machine_whose_clock_is_wrong(
    redis: Redis, skew: timedelta
) -> None:
    clock = SharedClock(redis, own=Skewed(skew))
    assert abs(difference(clock) - abs(skew)) < CLOSE, "before it was started it knows no better"
    with capture_logs() as logs:
        await clock.start()
    await clock.stop()
    assert difference(clock) < CLOSE
    sentences = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert sentences == (["本机时钟与 Redis 相差过大，轮询按 Redis 的时间进行"] if skew else [])


async def test_between_two_looks_it_goes_on_by_the_monotonic_clock(redis: Redis) -> None:
    own = FakeClock()
    clock = SharedClock(redis, own=own)
    await clock.start()
    await clock.stop()
    told = clock.now()
    own.advance(HOUR)
    assert clock.now() - told == HOUR


@pytest.mark.parametrize("skew", [timedelta(milliseconds=1), timedelta(milliseconds=-300)])
async def test_a_clock_in_step_is_not_blurred_by_how_long_answers_take(
    redis_url: str, skew: timedelta
) -> None:
    async with FaultProxy(redis_url) as proxy:
        redis = open_redis(proxy.url)
        own = Skewed(skew)
        clock = SharedClock(redis, own=own)
        proxy.stall()
        starting = asyncio.create_task(clock.start())
        asyncio.get_running_loop().call_later(0.2, proxy.resume)
        await starting
        await clock.stop()
        await redis.aclose()
    before, shown, after = own.now(), clock.now(), own.now()
    assert before - CLOSE / 100 <= shown <= after + CLOSE / 100, "half the wait would be 100 ms"


async def test_a_skew_that_comes_and_goes_is_told_once_each(redis: Redis) -> None:
    own = Skewed(timedelta())
    clock = SharedClock(redis, own=own, look_every=TICK)
    with capture_logs() as logs:
        await clock.start()
        for skew in (HOUR, timedelta()):
            own.skew, told = skew, len(logs)
            await wait_until(lambda told=told: len(logs) > told, description="told")
        await clock.stop()
    assert [entry["log_level"] for entry in logs if "时钟" in entry["event"]] == ["warning", "info"]


async def test_without_redis_the_own_clock_holds_until_redis_is_there(redis_url: str) -> None:
    async with FaultProxy(redis_url) as proxy:
        redis = open_redis(proxy.url, socket_timeout=timedelta(seconds=0.3))
        proxy.refuse()
        clock = SharedClock(redis, own=Skewed(HOUR), look_every=TICK)
        await clock.start()
        assert abs(difference(clock) - HOUR) < CLOSE
        proxy.resume()
        await wait_until(lambda: difference(clock) < CLOSE, description="Redis told its time")
        await clock.stop()
        await redis.aclose()


@pytest.mark.parametrize("skew", [-HOUR, HOUR])
async def test_a_carrier_is_understood_and_understands_a_worker_whose_clock_is_wrong(
    redis: Redis, skew: timedelta
) -> None:
    simulator = CarrierSimulator(SimulatorConfig(credential=CREDENTIAL))
    await simulator.start()
    clock = SharedClock(redis, own=Skewed(skew))
    await clock.start()
    try:
        async with gateway_for(simulator.url, GatewayTuning(clock=clock)) as gateway:
            answer = await gateway.query_usage(ACCOUNT, CARD)
            status = await gateway.query_status(ACCOUNT, CARD)
    finally:
        await clock.stop()
        await simulator.stop()
    assert abs(answer.reading_at - datetime.now(UTC)) < HOUR / 2
    assert abs(status.at - datetime.now(UTC)) < HOUR / 2
