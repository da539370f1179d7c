"""The users of docs/reference/redis-acl.example can do their work, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from redis.exceptions import ResponseError
from tests.asynq.serving import QUICK, Bench, open_bench
from tests.redis_servers import RedisFixture
from tests.redis_users import UrlOf, made_users, refusals, users_of
from tests.waiting import wait_until

from junhong_cmp.asynq.aggregation import Aggregation
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.scheduler import CronEntry, OverlapPolicy, Scheduler
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task

PREFIX = "asynq-"
UNIQUE = EnqueueOptions(queue="q", unique_for=timedelta(hours=1))
LATER = EnqueueOptions(queue="q", process_in=timedelta(hours=1), unique_for=timedelta(hours=1))
GROUPED = EnqueueOptions(queue="q", group="g")

pytestmark = pytest.mark.single_node("makes users on one server")


@pytest.fixture
async def url_of(redis_server: RedisFixture, redis_url: str) -> AsyncIterator[UrlOf]:
    """The URL for a user of the example; what a user was refused, the test fails for."""
    async with made_users(redis_server, redis_url, PREFIX) as url_of:
        yield url_of


async def join(_: str, tasks: Sequence[Task]) -> Task:
    return Task("joined", b"".join(task.payload for task in tasks))


async def handle(task: ProcessingTask) -> None:
    if task.type == "fail" and not task.retried:
        raise ValueError("once more")
    if task.type == "archive":
        raise SkipRetry("never")
    await task.write_result(b"done")


async def produce(redis: RedisClient, mark: bytes) -> None:
    client = Client(redis)
    kept = EnqueueOptions(queue="q", retention=timedelta(hours=1))
    for options in (UNIQUE, LATER, GROUPED, kept):
        await client.enqueue(Task("t", mark + str(options).encode()), options)
    await client.enqueue_many(
        [
            (Task(kind, mark + bytes([n])), EnqueueOptions(queue="q"))
            for n in range(10)
            for kind in ("fail", "archive")
        ]
    )
    await client.enqueue_many([(Task("t", mark + bytes([n])), UNIQUE) for n in range(10)])


async def schedule(redis: RedisClient, done: Callable[[], Any]) -> None:
    entry = CronEntry(
        id="e",
        spec="@every 1s",
        task=Task("t"),
        options=EnqueueOptions(queue="q"),
        overlap=OverlapPolicy.SKIP,
    )
    scheduler = Scheduler(redis, [entry])
    await scheduler.start()
    await wait_until(done, timeout=30, description="the entry has fired")
    await scheduler.stop()


async def operate(redis: RedisClient) -> None:
    """Use every operation the inspector has."""
    inspector = Inspector(redis)
    await inspector.queues()
    await inspector.groups("q")
    await inspector.history("q", 7)
    await inspector.servers()
    await inspector.scheduler_entries()
    await inspector.enqueue_events("e")
    for state in TaskState:
        await inspector.list_tasks("q", state, group="g") if state is TaskState.AGGREGATING else (
            await inspector.list_tasks("q", state)
        )
    (task, *_) = await inspector.list_tasks("q", TaskState.SCHEDULED)
    await inspector.update_task_payload("q", task.id, b"new")
    await inspector.archive_task("q", task.id)
    await inspector.run_task("q", task.id)
    await inspector.delete_task("q", task.id)
    await inspector.pause_queue("q")
    await inspector.unpause_queue("q")
    await inspector.cancel_processing(task.id)
    await inspector.archive_all("q", TaskState.PENDING)
    await inspector.run_all("q", TaskState.ARCHIVED)
    await inspector.check("q", repair=True)
    await inspector.delete_all("q", TaskState.PENDING)
    await inspector.delete_queue("q", force=True)


async def test_each_user_can_do_its_work(redis_server: RedisFixture, url_of: UrlOf) -> None:
    producer, operator = open_redis(url_of("producer")), open_redis(url_of("operator"))
    async with open_bench(url_of("worker")) as bench:
        await produce(producer, b"a")
        groups = Aggregation(aggregator=join, grace=timedelta(seconds=1))
        await bench.serve(handle, queues={"q": 1}, aggregation=groups)
        await bench.wait_size("archived", 10, "q", timeout=30)
        await schedule(producer, lambda: fired(bench))
        await bench.wait_size("pending", 0, "q", timeout=30)
        await asyncio.sleep(2 * QUICK.heartbeat.total_seconds())  # each duty had its turn
    await produce(producer, b"b")
    await operate(operator)
    assert await refusals(redis_server) == set()
    for client in (producer, operator):
        await client.aclose()


async def fired(bench: Bench) -> bool:
    """All that was produced has come through (failed ones twice), the joined one, and the entry's."""
    return await bench.counter("processed", "q") >= 10 + 20 + 11 + 1 + 2


@pytest.mark.parametrize("name", sorted(users_of(PREFIX)))
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",),
        ("CONFIG", "GET", "maxmemory"),
        ("KEYS", "*"),
        ("SHUTDOWN",),
        ("SUBSCRIBE", "other"),
        ("SET", "foreign", "1"),
        ("EVAL", "return redis.call('GET', KEYS[1])", 1, "foreign"),
        ("EVAL", "return redis.call('DEL', 'foreign')", 0),
        ("ACL", "LIST"),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
async def test_no_user_can_do_more(url_of: UrlOf, name: str, command: tuple[str | int, ...]) -> None:
    client = open_redis(url_of(name))
    with pytest.raises(ResponseError, match=r"permission|ACL failure|can't access"):
        await client.execute_command(*command)
    await client.aclose()
