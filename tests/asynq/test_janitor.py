from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.asynq.serving import Bench, Recorder, open_bench

from junhong_cmp.asynq.janitor import Janitor
from junhong_cmp.asynq.keys import queue_keys


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def test_more_expired_tasks_than_one_script_deletes_are_all_deleted(bench: Bench) -> None:
    await bench.serve(Recorder(), concurrency=50)
    ids = await bench.enqueue(*["a"] * 230, retention=timedelta(hours=1))
    await bench.wait_size("completed", 230)
    for task_id in ids[:-1]:
        await bench.redis.execute_command("ZADD", queue_keys("default").completed, 1, task_id)
    await Janitor(bench.broker).clean("default")
    assert await bench.ids("completed") == ids[-1:]
    assert await bench.field(ids[0], "msg") is None
