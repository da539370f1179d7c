from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.asynq.serving import QUICK, Bench, Recorder, no_delay, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.in_flight import InFlightTable
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.recoverer import Recoverer
from junhong_cmp.asynq.server_config import ServerConfig


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.fixture
def recoverer(bench: Bench) -> Recoverer:
    return Recoverer(bench.broker, InFlightTable(), ServerConfig(intervals=QUICK, retry_delay=no_delay))


async def abandon(bench: Bench, *kinds: str, **options: Any) -> list[str]:
    """Take tasks and let their leases lapse long ago."""
    ids = await bench.enqueue(*kinds, **options)
    await bench.broker.dequeue("default", len(ids), owner="dead")
    for task_id in ids:
        await bench.redis.execute_command("ZADD", queue_keys("default").lease, 1, task_id)
    return ids


async def test_a_lapsed_task_gets_another_try_and_counts_as_failed(
    bench: Bench, recoverer: Recoverer
) -> None:
    (task_id,) = await abandon(bench, "a")
    await recoverer.recover("default")
    assert await bench.ids("retry") == [task_id]
    raw = await bench.field(task_id, "msg")
    assert raw is not None
    message = TaskMessage.FromString(raw)
    assert (message.retried, message.error_msg) == (1, "任务租约过期：处理它的 Worker 已失联")
    assert (await bench.size("active"), await bench.size("lease")) == (0, 0)


async def test_more_lapsed_tasks_than_one_script_returns_are_all_taken_back(
    bench: Bench, recoverer: Recoverer
) -> None:
    await abandon(bench, *["a"] * 600)
    await recoverer.recover("default")
    assert (await bench.size("active"), await bench.size("retry")) == (0, 600)


async def test_a_lapsed_task_without_retries_left_is_archived(bench: Bench, recoverer: Recoverer) -> None:
    ids = await abandon(bench, "a", max_retry=0)
    await recoverer.recover("default")
    assert await bench.ids("archived") == ids


async def test_a_lease_within_the_margin_is_left_alone(bench: Bench, recoverer: Recoverer) -> None:
    await bench.enqueue("a")
    await bench.broker.dequeue("default", 1, owner="alive")
    await recoverer.recover("default")
    assert await bench.size("active") == 1


@pytest.mark.parametrize("missing", ["lease", "active", "task"])
async def test_a_queue_that_lost_one_of_its_three_records_is_repaired(bench: Bench, missing: str) -> None:
    (task_id,) = await bench.enqueue("a")
    await bench.broker.dequeue("default", 1, owner="dead")
    keys = queue_keys("default")
    gone = {"lease": keys.lease, "active": keys.active, "task": keys.task(task_id)}[missing]
    await bench.redis.execute_command("DEL", gone)
    recorder = Recorder()
    await bench.serve(recorder)
    if missing != "task":
        await wait_until(lambda: recorder.seen, timeout=15, description="the task is run again")
    await bench.wait_size("active", 0)
    await bench.wait_size("lease", 0)


async def test_a_bad_message_among_lapsed_ones_does_not_stop_the_rest(
    bench: Bench, recoverer: Recoverer
) -> None:
    bad, good = await abandon(bench, "bad", "good", retention=timedelta(seconds=5))
    await bench.redis.execute_command("HSET", queue_keys("default").task(bad), "msg", b"\xff\xff")
    await recoverer.recover("default")
    assert await bench.ids("retry") == [good]
    assert await bench.ids("archived") == [bad]
