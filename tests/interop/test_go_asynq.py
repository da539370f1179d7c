"""Between this package and the real Asynq v0.26.0, both ways (`make interop`; builds tests/interop/go)."""

import asyncio
import base64
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.errors import DuplicateTaskError, TaskIdConflictError
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.scheduler import CronEntry, Scheduler
from junhong_cmp.asynq.task import EnqueueOptions, Task

pytestmark = pytest.mark.interop

QUEUE = "golden"
SOURCE = Path(__file__).parent / "go"


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("go") / "interop"
    command = ["go", "build", "-o", str(program), "."]
    subprocess.run(
        command, cwd=SOURCE, check=True, timeout=300, env={**os.environ, "GOFLAGS": "-mod=readonly"}
    )
    return program


class GoAsynq:
    """Runs the Go program against the test's Redis."""

    def __init__(self, program: Path, socket: str) -> None:
        self._program = program
        self._socket = socket

    async def run(self, command: str, *arguments: str) -> Any:
        process = await asyncio.create_subprocess_exec(
            str(self._program),
            command,
            self._socket,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await asyncio.wait_for(process.communicate(), timeout=60)
        assert process.returncode == 0, errors.decode()
        return json.loads(output)


@pytest.fixture
def go(go_program: Path, redis_url: str) -> GoAsynq:
    return GoAsynq(go_program, urlsplit(redis_url).path)


@asynccontextmanager
async def scheduling(redis: Redis, entry: CronEntry) -> AsyncIterator[None]:
    scheduler = Scheduler(redis, [entry])
    await scheduler.start()
    try:
        yield
    finally:
        await scheduler.stop()


async def test_go_enqueues_and_we_work(go: GoAsynq, redis: Redis) -> None:
    cases = {case["task_id"]: case for case in await go.run("enqueue")}
    assert {case["outcome"] for case in cases.values()} == {"enqueued"}
    broker = Broker(redis)

    tasks = (await broker.dequeue(QUEUE, 100, owner="py")).tasks

    assert {task.message.id for task in tasks} == {
        task_id for task_id, case in cases.items() if case["state"] == "pending"
    }
    for task in tasks:
        case = cases[task.message.id]
        assert task.message.type == case["type"]
        assert task.message.payload == base64.b64decode(case["payload"] or "")
        assert dict(task.message.headers) == case.get("headers", {})
        assert task.message.retry == case.get("max_retry", 25)
        assert task.message.retention == case.get("retention", 0)
    kinds = [AckKind.COMPLETE if task.message.retention else AckKind.DONE for task in tasks]
    acks = [Ack(kind, task) for kind, task in zip(kinds, tasks, strict=True)]
    assert set(await broker.ack(QUEUE, acks)) == {AckOutcome.OK}
    seen = await go.run("inspect", QUEUE)
    assert seen["queue"]["processed"] == len(tasks)
    assert (seen["queue"]["scheduled"], seen["queue"]["aggregating"], seen["queue"]["completed"]) == (2, 2, 1)


async def test_ids_and_locks_hold_both_ways(go: GoAsynq, redis: Redis) -> None:
    cases = {case["name"]: case for case in await go.run("enqueue")}
    client = Client(redis)
    plain, unique = cases["plain"], cases["unique"]
    with pytest.raises(TaskIdConflictError):
        await client.enqueue(Task("t"), EnqueueOptions(queue=QUEUE, task_id=plain["task_id"]))
    with pytest.raises(DuplicateTaskError):
        await client.enqueue(
            Task(unique["type"], base64.b64decode(unique["payload"])),
            EnqueueOptions(queue=QUEUE, unique_for=timedelta(hours=1)),
        )

    await redis.flushall()
    for case in cases.values():
        await client.enqueue(Task("x"), EnqueueOptions(queue=QUEUE, task_id=case["task_id"]))
    assert {case["outcome"] for case in await go.run("enqueue")} <= {"id_conflict"}

    await redis.flushall()
    await client.enqueue(
        Task(unique["type"], base64.b64decode(unique["payload"])),
        EnqueueOptions(queue=QUEUE, unique_for=timedelta(hours=1)),
    )
    again = {case["name"]: case["outcome"] for case in await go.run("enqueue")}
    assert again["unique"] == "duplicate"
    assert again["plain"] == "enqueued"


async def test_we_enqueue_and_go_works(go: GoAsynq, redis: Redis) -> None:
    client = Client(redis)

    async def put(name: str, **more: Any) -> None:
        await client.enqueue(
            Task(f"t:{name}", name.encode(), {"trace": name}),
            EnqueueOptions(queue=QUEUE, task_id=name, **more),
        )

    await put("plain", unique_for=timedelta(hours=1))
    await put("soon", process_in=timedelta(seconds=1))
    await put("fail", max_retry=7)
    await put("skip")
    await put("result", retention=timedelta(hours=1))

    handled = {task["id"]: task for task in await go.run("serve", QUEUE, "5")}

    assert set(handled) == {"plain", "soon", "fail", "skip", "result"}
    assert handled["plain"]["headers"] == {"trace": "plain"}
    assert base64.b64decode(handled["plain"]["payload"]) == b"plain"
    assert handled["fail"]["max_retry"] == 7
    assert not [key async for key in redis.scan_iter("*unique*")]
    seen = await go.run("inspect", QUEUE)
    assert {task_id: task["state"] for task_id, task in seen["tasks"].items()} == {
        "fail": "retry",
        "skip": "archived",
        "result": "completed",
    }
    assert seen["tasks"]["result"]["result"] == "42"
    (info,) = await Inspector(redis).queues()
    assert (info.retry, info.archived, info.completed, info.pending) == (1, 1, 1, 0)
    assert (info.processed_total, info.failed_total) == (5, 2)


async def test_go_goes_on_with_what_we_handed_back(go: GoAsynq, redis: Redis) -> None:
    client, broker = Client(redis), Broker(redis)
    for name in ("requeued", "retried", "archived"):
        await client.enqueue(Task("t", b"x", {"k": "v"}), EnqueueOptions(queue=QUEUE, task_id=name))
    tasks = (await broker.dequeue(QUEUE, 3, owner="py")).tasks
    kinds = [AckKind.REQUEUE, AckKind.RETRY, AckKind.ARCHIVE]
    acks = [Ack(kind, task, error="boom", at=1) for kind, task in zip(kinds, tasks, strict=True)]
    assert await broker.ack(QUEUE, acks) == [AckOutcome.OK] * 3

    seen = (await go.run("inspect", QUEUE))["tasks"]
    assert {name: task["state"] for name, task in seen.items()} == {
        "requeued": "pending",
        "retried": "retry",
        "archived": "archived",
    }
    assert (seen["retried"]["retried"], seen["retried"]["last_err"]) == (1, "boom")

    handled = {task["id"]: task for task in await go.run("serve", QUEUE, "2")}
    assert set(handled) == {"requeued", "retried"}
    assert handled["retried"]["retried"] == 1


async def test_a_task_go_took_over_is_not_ours_any_more(go: GoAsynq, redis: Redis) -> None:
    """Our worker freezes, its lease ends, Go recovers and works on the task: our late ack is refused."""
    await Client(redis).enqueue(
        Task("t", b"fail"), EnqueueOptions(queue=QUEUE, task_id="a", retention=timedelta(hours=1))
    )
    broker = Broker(redis)
    (task,) = (await broker.dequeue(QUEUE, 1, owner="py")).tasks
    await redis.zadd(f"asynq:{{{QUEUE}}}:lease", {"a": 1})

    serving = asyncio.create_task(go.run("serve", QUEUE, "1"))
    retry = f"asynq:{{{QUEUE}}}:retry"
    await wait_until(lambda: redis.zscore(retry, "a"), timeout=15, description="Go recovers the task")
    await redis.zadd(retry, {"a": 1})
    await serving
    assert await redis.zscore(retry, "a") > 1  # type: ignore[operator] # it is there: Go failed it again
    assert await broker.extend_leases(QUEUE, [task]) == ["a"]
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [AckOutcome.SUPERSEDED]
    seen = await go.run("inspect", QUEUE)
    assert (seen["tasks"]["a"]["state"], seen["tasks"]["a"]["retried"]) == ("retry", 2)


async def test_go_sees_our_queue_servers_and_cron_entries(go: GoAsynq, redis: Redis) -> None:
    client, broker = Client(redis), Broker(redis)
    for name in ("waiting", "working"):
        await client.enqueue(Task("t", b"{}"), EnqueueOptions(queue=QUEUE, task_id=name))
    (working,) = (await broker.dequeue(QUEUE, 1, owner="py")).tasks
    info = ServerInfo(
        host="h",
        pid=os.getpid(),
        server_id="s",
        concurrency=4,
        queues={QUEUE: 1},
        status="active",
        labels={"role": "all", "instance": "一号"},
    )
    await broker.write_server_state(
        info, [WorkerInfo(host="h", server_id="s", task_id=working.message.id, queue=QUEUE)]
    )
    await broker.pause(QUEUE)
    options = EnqueueOptions(queue=QUEUE, max_retry=3, timeout=timedelta(seconds=90))
    never = CronEntry("py-cron", "0 0 1 1 *", Task("t:cron", b"{}"), options)

    async with scheduling(redis, never):
        await wait_until(lambda: redis.zcard("asynq:schedulers"), timeout=5, description="entries shown")
        await wait_until(Inspector(redis).scheduler_entries, timeout=5, description="entries shown")
        seen = await go.run("inspect", QUEUE)

    assert (seen["queue"]["pending"], seen["queue"]["active"], seen["queue"]["paused"]) == (1, 1, True)
    assert seen["tasks"]["waiting"]["state"] == "active"
    assert not seen["tasks"]["waiting"]["orphaned"]
    (server,) = seen["servers"]
    assert (server["id"], server["queues"], server["workers"]) == ("s", {QUEUE: 1}, ["waiting"])
    (entry,) = seen["scheduler"]
    assert (entry["id"], entry["spec"], entry["type"], entry["never"]) == (
        "py-cron",
        "0 0 1 1 *",
        "t:cron",
        True,
    )
    assert entry["options"] == ['Queue("golden")', "MaxRetry(3)", "Timeout(1m30s)"]


async def test_go_sees_the_history_of_our_cron_entries(go: GoAsynq, redis: Redis) -> None:
    entry = CronEntry("py-cron", "@every 1s", Task("t:cron"), EnqueueOptions(queue=QUEUE))
    async with scheduling(redis, entry):
        await wait_until(
            lambda: redis.exists("asynq:scheduler_history:py-cron"), timeout=5, description="a run"
        )
        seen = await go.run("inspect", QUEUE)
    first = seen["events"][-1]
    assert first["task_id"] == f"cron:py-cron:{first['at']}"
    assert seen["tasks"][first["task_id"]]["state"] == "pending"


async def test_we_see_a_server_and_a_scheduler_of_go(go: GoAsynq, redis: Redis) -> None:
    serving = asyncio.create_task(go.run("serve", QUEUE, "1"))
    inspector = Inspector(redis)
    await wait_until(inspector.servers, timeout=10, description="Go's server")
    (server,) = await inspector.servers()
    assert (dict(server.info.queues), server.info.status) == ({QUEUE: 1}, "active")
    await Client(redis).enqueue(Task("t"), EnqueueOptions(queue=QUEUE))
    await serving
    assert await inspector.servers() == []
