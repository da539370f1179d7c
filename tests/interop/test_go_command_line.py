"""Go's command line ``asynq`` shows and steers what our side does."""

import asyncio
import json
import os
import socket as sockets
from collections.abc import Callable
from datetime import timedelta

from tests.interop.every_state import HOUR, STATES, fill_every_state, is_in, obey
from tests.interop.programs import AsynqTool
from tests.interop.python_side import QUEUE, PythonSide
from tests.waiting import wait_until

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.scheduler import CronEntry
from junhong_cmp.asynq.task import EnqueueOptions, Task


async def test_stats_and_lists_of_every_state(tool: AsynqTool, ours: PythonSide) -> None:
    async with ours.serving(obey):
        await fill_every_state(ours)
        stats = json.loads(await tool.run("stats", "--json"))
        (ours_say,) = await ours.inspector.queues()
        assert {state: stats["aggregate"][state] for state in STATES} == dict.fromkeys(STATES, 1)
        assert {state: getattr(ours_say, state) for state in STATES} == dict.fromkeys(STATES, 1)
        assert (stats["aggregate"]["processed"], stats["aggregate"]["failed"]) == (
            ours_say.processed_today,
            ours_say.failed_today,
        )
        for state in STATES:
            group = ("-g", "cards") if state == "aggregating" else ()
            (row,) = await tool.table("task", "ls", "-q", QUEUE, "-s", state, *group)
            assert (row["ID"], row["Type"]) == (state, f"t:{state}")
        retry = await tool.run("task", "inspect", "-q", QUEUE, "-i", "retry")
        assert "as ordered" in retry
        assert "1/7" in retry or "Retried" in retry
        (listed,) = await tool.table("task", "ls", "-q", QUEUE, "-s", "completed")
        assert listed["Result"] == "42"


async def test_servers_are_listed(tool: AsynqTool, ours: PythonSide) -> None:
    async with ours.serving(obey):
        await ours.put("active", b"hang")

        async def seen_at_work() -> bool:
            rows = await tool.table("server", "ls") if await ours.servers() else []
            return bool(rows) and rows[0]["Active Workers"] == "1/4"

        await wait_until(seen_at_work, timeout=20, description="the server is listed with its task")
        (row,) = await tool.table("server", "ls")
    assert (row["Host"], row["PID"], row["State"], row["Queues"]) == (
        sockets.gethostname(),
        str(os.getpid()),
        "active",
        f"{QUEUE}:1",
    )
    assert "No running servers" in await tool.run("server", "ls")


async def test_cron_entries_and_their_history_are_listed(tool: AsynqTool, ours: PythonSide) -> None:
    options = EnqueueOptions(queue=QUEUE, max_retry=3, timeout=timedelta(seconds=90), retention=HOUR)
    async with ours.scheduling(CronEntry("every-second", "@every 1s", Task("t:cron", b"{}"), options)):
        await wait_until(
            lambda: ours.redis.execute_command("EXISTS", "asynq:scheduler_history:every-second"),
            description="the entry fired",
        )
        (entry,) = await tool.table("cron", "ls")
        history = await tool.table("cron", "history", "every-second")
    assert (entry["EntryID"], entry["Spec"], entry["Type"]) == ("every-second", "@every 1s", "t:cron")
    assert entry["Options"] == '[Queue("golden") MaxRetry(3) Timeout(1m30s) Retention(1h0m0s)]'
    events = await ours.inspector.enqueue_events("every-second")
    assert history[-1]["TaskID"] == events[-1].task_id
    assert "No scheduler entries" in await tool.run("cron", "ls")


async def test_a_running_task_is_cancelled(tool: AsynqTool, ours: PythonSide) -> None:
    cancelled = asyncio.Event()

    async def handle(_: ProcessingTask) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with ours.serving(handle):
        await ours.put("a")
        await wait_until(lambda: is_in(ours, "a", "active"), description="it runs")

        async def cancel() -> bool:
            await tool.run("task", "cancel", "a")
            return cancelled.is_set()

        await wait_until(cancel, description="the handler is cancelled")
        await wait_until(lambda: is_in(ours, "a", "retry"), description="it is retried, as under Go")


async def test_a_queue_is_paused_and_resumed(tool: AsynqTool, ours: PythonSide) -> None:
    handled: list[str] = []

    async def handle(task: ProcessingTask) -> None:
        handled.append(task.id)

    await ours.put("first")
    async with ours.serving(handle):
        await wait_until(lambda: handled == ["first"], description="the queue is served")
        await tool.run("queue", "pause", QUEUE)
        assert (await ours.inspector.queues())[0].paused
        # A server already waiting for the queue's next task finds the pause when that task comes.
        await ours.put("second")
        await ours.put("third")
        assert not await _soon(lambda: len(handled) > 1)
        await tool.run("queue", "resume", QUEUE)
        await wait_until(lambda: handled == ["first", "second", "third"], description="it is served again")


async def test_tasks_are_run_archived_and_deleted(tool: AsynqTool, ours: PythonSide) -> None:
    for name in ("run", "archive", "delete"):
        await ours.put(name, process_in=HOUR, unique_for=HOUR)
    await tool.run("task", "run", "-q", QUEUE, "-i", "run")
    await tool.run("task", "archive", "-q", QUEUE, "-i", "archive")
    await tool.run("task", "delete", "-q", QUEUE, "-i", "delete")
    states = [await ours.state(name) for name in ("run", "archive", "delete")]
    assert states == ["pending", "archived", None]
    locks = await ours.redis.execute_command("KEYS", "asynq:*unique*")
    assert len(locks) == 2  # deleting a task frees the lock that it owns


async def test_a_task_enqueued_by_hand_is_run(tool: AsynqTool, ours: PythonSide) -> None:
    handled: list[ProcessingTask] = []

    async def handle(task: ProcessingTask) -> None:
        handled.append(task)

    async with ours.serving(handle):
        await tool.run("task", "enqueue", "-t", "t:hand", "-l", "{}", "--queue", QUEUE, "--retry", "3")
        await wait_until(lambda: handled, description="it is run")
    assert (handled[0].type, handled[0].payload, handled[0].max_retry) == ("t:hand", b"{}", 3)


async def _soon(condition: Callable[[], bool]) -> bool:
    """Whether it becomes true within a second: for what must not happen there is nothing to wait for."""
    try:
        await wait_until(condition, timeout=1, description="")
    except AssertionError:
        return False
    return True
