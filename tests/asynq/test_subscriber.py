from collections.abc import AsyncIterator

import pytest
from tests.asynq.serving import Bench, Gate, open_bench
from tests.redis_servers import RedisFixture
from tests.waiting import wait_until


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def test_cancels_are_heard_again_after_the_subscription_was_killed(
    redis_server: RedisFixture, bench: Bench
) -> None:
    gate = Gate()
    await bench.serve(gate)
    await bench.enqueue("a", "b")
    await wait_until(lambda: len(gate.entered) == 2, description="both run")

    async def heard(task_id: str) -> bool:
        return await bench.broker.publish_cancel(task_id) > 0

    await wait_until(lambda: heard("nobody"), description="the server listens")
    await redis_server.command("CLIENT", "KILL", "TYPE", "pubsub")
    await wait_until(lambda: heard(gate.entered[0]), description="it listens again")
    await wait_until(lambda: gate.cancelled, description="the task is cancelled")
    assert gate.cancelled == gate.entered[:1]


async def test_garbage_on_the_channel_is_ignored(bench: Bench) -> None:
    gate = Gate()
    await bench.serve(gate)
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")

    async def heard() -> bool:
        return bool(await bench.redis.execute_command("PUBLISH", "asynq:cancel", b"\xff\xfe\x00"))

    await wait_until(heard, description="the server listens")
    await bench.broker.publish_cancel(task_id)
    await wait_until(lambda: gate.cancelled, description="the next id is still heard")
