from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.asynq.serving import Bench, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.forwarder import Forwarder
from junhong_cmp.asynq.keys import queue_keys


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def test_more_due_tasks_than_one_script_moves_are_all_moved(bench: Bench) -> None:
    ids = await bench.enqueue(*["a"] * 350, process_in=timedelta(hours=1))
    keys = queue_keys("default")
    for task_id in ids[:349]:
        await bench.redis.execute_command("ZADD", keys.scheduled, 1, task_id)
    await Forwarder(bench.broker).forward("default")
    assert (await bench.size("pending"), await bench.ids("scheduled")) == (349, ids[349:])


async def test_a_delayed_task_runs_when_its_time_has_come(bench: Bench) -> None:
    recorder = Recorder()
    await bench.serve(recorder)
    await bench.enqueue("a", process_in=timedelta(seconds=1))
    await wait_until(lambda: recorder.seen, description="forwarded and run")
