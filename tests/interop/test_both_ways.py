"""Limits, cron entries and groups of one language, kept by the other."""

import asyncio
import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.interop.every_state import HOUR, is_in, obey
from tests.interop.programs import GoAsynq
from tests.interop.python_side import QUEUE, PythonSide
from tests.waiting import wait_until

from junhong_cmp.asynq.aggregation import Aggregation
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.task import Task


async def test_go_keeps_our_timeout_and_deadline(go: GoAsynq, ours: PythonSide) -> None:
    in_an_hour = datetime.now(UTC) + HOUR
    await ours.put("timeout", timeout=timedelta(seconds=90))
    await ours.put("deadline", deadline=in_an_hour)
    await ours.put("both", timeout=timedelta(hours=9), deadline=in_an_hour)
    await ours.put("default")
    handled = {task["id"]: task["left_s"] for task in await go.run("serve", QUEUE, "4")}
    assert 80 < handled["timeout"] <= 90
    assert 3500 < handled["deadline"] <= 3601
    assert 3500 < handled["both"] <= 3601
    assert 1790 < handled["default"] <= 1800


async def test_we_keep_everything_go_enqueued(go: GoAsynq, ours: PythonSide) -> None:
    """All of Go's cases through a server of ours: limits, headers, retries, results."""
    cases = {case["task_id"]: case for case in await go.run("enqueue")}
    pending = {task_id for task_id, case in cases.items() if case["state"] == "pending"}
    seen: dict[str, ProcessingTask] = {}

    async def handle(task: ProcessingTask) -> None:
        seen[task.id] = task

    async with ours.serving(handle):
        await wait_until(lambda: set(seen) == pending, description="all pending tasks are run")
        await wait_until(lambda: _idle(ours), description="all are acknowledged")
    now = datetime.now(UTC)
    for task_id, task in seen.items():
        case = cases[task_id]
        assert (task.type, task.payload) == (case["type"], base64.b64decode(case["payload"] or ""))
        assert dict(task.headers) == case.get("headers", {})
        assert (task.retried, task.max_retry) == (0, case.get("max_retry", 25))
        timeout = case.get("timeout") or (0 if case.get("deadline") else 1800)
        if timeout:
            assert timedelta(seconds=timeout - 60) < task.deadline - now <= timedelta(seconds=timeout)
        else:
            assert task.deadline == datetime.fromtimestamp(case["deadline"], UTC)
    assert not await ours.redis.execute_command("EXISTS", f"asynq:{{{QUEUE}}}:unique:golden:j:")
    inspected = await go.run("inspect", QUEUE)
    retained = [task_id for task_id, case in cases.items() if case.get("retention")]
    assert [inspected["tasks"][task_id]["state"] for task_id in retained] == ["completed"]


async def test_failures_of_ours_as_go_sees_them(go: GoAsynq, ours: PythonSide) -> None:
    """Retry count, SkipRetry, a result, and the archive after the last retry."""
    await ours.put("fail", b"fail", max_retry=7)
    await ours.put("last", b"fail", max_retry=0)
    await ours.put("skip", b"skip")
    await ours.put("result", b"result", retention=HOUR)
    async with ours.serving(obey):
        for task_id, state in (("fail", "retry"), ("last", "archived"), ("skip", "archived")):
            await wait_until(
                lambda i=task_id, s=state: is_in(ours, i, s), description=f"{task_id} is {state}"
            )
        await wait_until(lambda: is_in(ours, "result", "completed"), description="result is kept")
    tasks = (await go.run("inspect", QUEUE))["tasks"]
    assert (tasks["fail"]["retried"], tasks["fail"]["max_retry"], tasks["fail"]["last_err"]) == (
        1,
        7,
        "as ordered",
    )
    assert (tasks["last"]["state"], tasks["last"]["retried"]) == ("archived", 0)
    assert tasks["skip"]["state"] == "archived"
    assert tasks["result"]["result"] == "42"


async def test_go_runs_a_task_of_ours_when_it_is_due(go: GoAsynq, ours: PythonSide) -> None:
    info = await ours.put("soon", process_in=timedelta(seconds=2))
    assert await ours.state("soon") == "scheduled"
    await go.run("serve", QUEUE, "1")
    assert datetime.now(UTC) >= info.process_at


async def test_go_joins_a_group_of_ours(go: GoAsynq, ours: PythonSide) -> None:
    for name in ("b", "a", "c"):
        await ours.put(name, name.encode(), group="cards")
    assert await go.run("aggregate", QUEUE) == {"type": "joined:cards", "payload": "a,b,c"}
    assert [await ours.state(name) for name in "abc"] == [None] * 3


async def test_we_join_a_group_of_go(go: GoAsynq, ours: PythonSide) -> None:
    """Two of Go's cases are for one group; one of them holds a lock, which ends with the task."""
    cases = [case for case in await go.run("enqueue") if case.get("group")]
    assert [case["state"] for case in cases] == ["aggregating", "aggregating"]
    handled: list[ProcessingTask] = []

    async def handle(task: ProcessingTask) -> None:
        handled.append(task)

    def join(group: str, tasks: Sequence[Task]) -> Task:
        return Task(f"joined:{group}", b",".join(sorted(task.type.encode() for task in tasks)))

    rules = Aggregation(aggregator=join, grace=timedelta(seconds=1))
    async with ours.serving(handle, aggregation=rules):
        await wait_until(
            lambda: [task for task in handled if task.type == "joined:cards"], description="the group's task"
        )
        await wait_until(lambda: _idle(ours), description="all are acknowledged")
    (joined,) = (task for task in handled if task.type == "joined:cards")
    assert joined.payload == ",".join(sorted(case["type"] for case in cases)).encode()
    seen = await go.run("inspect", QUEUE)
    assert (seen["queue"]["aggregating"], seen["queue"]["pending"]) == (0, 0)
    assert [await ours.state(case["task_id"]) for case in cases] == [None, None]
    locks = await ours.redis.execute_command("KEYS", f"asynq:{{{QUEUE}}}:unique:{cases[1]['type']}:*")
    assert locks == []


async def test_a_cron_entry_of_go(go: GoAsynq, ours: PythonSide) -> None:
    """Our server runs what Go's scheduler enqueues; our inspector shows its entry and history."""
    handled: list[ProcessingTask] = []

    async def handle(task: ProcessingTask) -> None:
        handled.append(task)

    async with go.running("schedule"), ours.serving(handle):
        await wait_until(lambda: len(handled) >= 2, timeout=20, description="two runs")
        await wait_until(ours.inspector.scheduler_entries, description="the entry is shown")
        (entry,) = await ours.inspector.scheduler_entries()
        events = await ours.inspector.enqueue_events(entry.id)
    assert (entry.spec, entry.task_type, entry.task_payload) == ("@every 1s", "interop:cron", b"{}")
    assert list(entry.enqueue_options) == ['Queue("golden")', "MaxRetry(3)", "Retention(1h0m0s)"]
    assert {task.id for task in handled} <= {event.task_id for event in events}
    assert {(task.type, task.max_retry) for task in handled} == {("interop:cron", 3)}


async def test_we_cancel_a_task_that_go_runs(go: GoAsynq, ours: PythonSide) -> None:
    await ours.put("a")
    async with go.running("work", "-hang"):
        await wait_until(lambda: ours.executed("a"), description="Go runs the task")

        async def cancelled() -> bool:
            await ours.inspector.cancel_processing("a")
            return await ours.executed("a") > 1  # Go tries a cancelled task again

        await wait_until(cancelled, timeout=20, description="Go hears of it")


async def test_we_pause_a_queue_that_go_serves(go: GoAsynq, ours: PythonSide) -> None:
    async with go.running("work"):
        await wait_until(ours.servers, timeout=20, description="Go's server is up")
        await ours.inspector.pause_queue(QUEUE)
        await ours.put("a")
        await asyncio.sleep(1)  # several of Go's checks; for what must not happen there is no event
        assert await ours.executed("a") == 0
        await ours.inspector.unpause_queue(QUEUE)
        await wait_until(lambda: ours.executed("a"), description="it goes on")


async def _idle(ours: PythonSide) -> bool:
    (queue,) = await ours.inspector.queues()
    return queue.active == 0 and queue.pending == 0
