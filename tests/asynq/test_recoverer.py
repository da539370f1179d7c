import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import QUICK, Bench, Recorder, no_delay, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.in_flight import InFlightTable
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.recoverer import Recoverer
from junhong_cmp.asynq.server_config import PoisonPolicy, ServerConfig


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


async def lapse_again(bench: Bench, recoverer: Recoverer, task_id: str) -> None:
    """Take a recovered task once more, let its lease lapse and have it recovered."""
    await bench.wait_size("retry", 1)

    async def taken() -> bool:
        await bench.broker.forward("default")
        return len((await bench.broker.dequeue("default", 1, owner="dead")).tasks) == 1

    await wait_until(taken, description="the task is due again")
    await bench.redis.execute_command("ZADD", queue_keys("default").lease, 1, task_id)
    await recoverer.recover("default")


async def test_a_lapsed_task_gets_another_try_that_costs_no_retry(bench: Bench, recoverer: Recoverer) -> None:
    (task_id,) = await abandon(bench, "a")
    await recoverer.recover("default")
    assert await bench.ids("retry") == [task_id]
    raw = await bench.field(task_id, "msg")
    assert raw is not None
    message = TaskMessage.FromString(raw)
    assert (message.retried, message.error_msg) == (0, "任务租约过期：处理它的 Worker 已失联")
    assert (await bench.size("active"), await bench.size("lease")) == (0, 0)
    assert (await bench.counter("processed"), await bench.counter("failed")) == (0, 0)


async def test_more_lapsed_tasks_than_one_script_returns_are_all_taken_back(
    bench: Bench, recoverer: Recoverer
) -> None:
    await abandon(bench, *["a"] * 600)
    await recoverer.recover("default")
    assert (await bench.size("active"), await bench.size("retry")) == (0, 600)


async def test_a_task_that_may_not_be_retried_survives_a_crash_of_its_worker(
    bench: Bench, recoverer: Recoverer
) -> None:
    ids = await abandon(bench, "a", max_retry=0)
    await recoverer.recover("default")
    recorder = Recorder()
    await bench.serve(recorder)
    await wait_until(lambda: recorder.seen, description="the task is run again")
    assert [task.id for task in recorder.seen] == ids
    await bench.wait_size("active", 0)
    assert await bench.size("archived") == 0


async def test_a_task_that_keeps_losing_its_worker_is_archived_as_poison(
    bench: Bench, recoverer: Recoverer
) -> None:
    (task_id,) = await abandon(bench, "a")
    await recoverer.recover("default")
    await lapse_again(bench, recoverer, task_id)
    with capture_logs() as logs:
        await lapse_again(bench, recoverer, task_id)
    assert await bench.ids("archived") == [task_id]
    raw = await bench.field(task_id, "msg")
    assert raw is not None
    assert TaskMessage.FromString(raw).error_msg == "毒丸任务已归档：72 小时内 3 次使处理它的 Worker 失联"
    (told,) = [entry for entry in logs if entry["event"] == "毒丸任务已归档"]
    assert (told["log_level"], told["task_id"], told["queue"]) == ("error", task_id, "default")
    assert await bench.field(task_id, "recoveries") is None  # an operator who runs it again starts anew


async def test_recoveries_of_long_ago_do_not_make_a_task_poison(bench: Bench, recoverer: Recoverer) -> None:
    (task_id,) = await abandon(bench, "a")
    long_ago = int(time.time()) - 73 * 3600
    key = queue_keys("default").task(task_id)
    await bench.redis.execute_command("HSET", key, "recoveries", f"{long_ago} {long_ago + 60} x")
    await recoverer.recover("default")
    assert await bench.ids("retry") == [task_id]
    kept = await bench.field(task_id, "recoveries")
    assert kept is not None
    assert len(kept.split()) == 4


async def test_how_many_recoveries_make_poison_is_up_to_the_server(bench: Bench) -> None:
    ids = await abandon(bench, "a")
    config = ServerConfig(poison=PoisonPolicy(recoveries=1, window=timedelta(hours=1)))
    await Recoverer(bench.broker, InFlightTable(), config).recover("default")
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
