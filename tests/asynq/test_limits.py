"""How much a server keeps and how large a task it takes is up to its configuration."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.asynq.serving import Bench, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.task import Task


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def refuse(task: ProcessingTask) -> None:
    raise SkipRetry("never")


async def test_a_server_keeps_as_many_archived_tasks_as_it_is_told(bench: Bench) -> None:
    await bench.enqueue_many(20)
    await bench.serve(refuse, archive=ArchiveLimits(size=3, age=timedelta(days=1)))

    async def all_failed() -> bool:
        return await bench.counter("failed") == 20

    await wait_until(all_failed, description="all have failed")
    assert await bench.size("archived") == 3
    assert len(await bench.keys("asynq:{default}:t:*")) == 3


async def test_a_server_takes_messages_as_large_as_it_is_told(bench: Bench) -> None:
    generous = Client(bench.redis, max_payload_bytes=4 << 20)
    for size in (100 << 10, 3 << 20):
        await generous.enqueue(Task("t", b"x" * size))
    seen = Recorder()
    await bench.serve(seen, max_message_bytes=4 << 20)
    await wait_until(lambda: len(seen.seen) == 2, description="both are handled")
    assert sorted(len(task.payload) for task in seen.seen) == [100 << 10, 3 << 20]
    assert await bench.size("archived") == 0
