"""The web UI's REST answers tell the same of our side as our own inspector."""

import os
from datetime import timedelta
from typing import Any

from tests.interop.every_state import HOUR, STATES, fill_every_state, is_in, obey
from tests.interop.programs import Asynqmon, GoAsynq
from tests.interop.python_side import QUEUE, PythonSide
from tests.waiting import wait_until

from junhong_cmp.asynq.scheduler import CronEntry
from junhong_cmp.asynq.task import EnqueueOptions, Task


async def test_queue_figures_and_task_lists(asynqmon: Asynqmon, go: GoAsynq, ours: PythonSide) -> None:
    async with ours.serving(obey):
        await fill_every_state(ours)
        (shown,) = (await asynqmon.get("queues"))["queues"]
        listed: dict[str, list[dict[str, Any]]] = {}
        for state in STATES:
            folder = "groups/cards/" if state == "aggregating" else ""
            listed[state] = (await asynqmon.get(f"queues/{QUEUE}/{folder}{state}_tasks"))["tasks"]
        groups = (await asynqmon.get(f"queues/{QUEUE}/groups"))["groups"]
        days = (await asynqmon.get("queue_stats"))["stats"][QUEUE]
        of_go = (await go.run("inspect", QUEUE))["queue"]
        (of_ours,) = await ours.inspector.queues()
        our_days = await ours.inspector.history(QUEUE, days=1)

    for name in (*STATES, "paused"):
        assert shown[name] == of_go[name] == getattr(of_ours, name), name
    assert (shown["size"], shown["groups"]) == (of_ours.size, 1)
    assert (shown["processed"], shown["failed"]) == (of_ours.processed_today, of_ours.failed_today) == (3, 2)
    assert (of_go["processed_total"], of_go["failed_total"]) == (
        of_ours.processed_total,
        of_ours.failed_total,
    )
    assert abs(shown["latency_msec"] - of_ours.latency.total_seconds() * 1000) < 2000
    assert {state: [task["id"] for task in tasks] for state, tasks in listed.items()} == {
        state: [state] for state in STATES
    }
    (retry,), (completed,) = listed["retry"], listed["completed"]
    assert (retry["retried"], retry["max_retry"], retry["error_message"]) == (1, 7, "as ordered")
    assert completed["result"] == "42"
    assert 3500 < completed["ttl_seconds"] <= 3600
    assert groups == [{"group": "cards", "size": 1}]
    today = next(day for day in days if day["date"] == str(our_days[0].day))
    assert (today["processed"], today["failed"]) == (our_days[0].processed, our_days[0].failed)


async def test_a_server_with_its_worker(asynqmon: Asynqmon, ours: PythonSide) -> None:
    async with ours.serving(obey) as server:
        await ours.put("active", b"hang", timeout=HOUR)

        async def shown() -> list[dict[str, Any]]:
            servers: list[dict[str, Any]] = (await asynqmon.get("servers"))["servers"]
            return [one for one in servers if one["active_workers"]]

        await wait_until(shown, timeout=20, description="the server is shown with its task")
        (one,) = await shown()
    assert (one["id"], one["pid"], one["status"], one["concurrency"], one["queue_priorities"]) == (
        server.id,
        os.getpid(),
        "active",
        4,
        {QUEUE: 1},
    )
    (worker,) = one["active_workers"]
    assert (worker["task_id"], worker["task_type"], worker["queue"]) == ("active", "t:active", QUEUE)


async def test_cron_entries_with_their_history(asynqmon: Asynqmon, ours: PythonSide) -> None:
    options = EnqueueOptions(queue=QUEUE, max_retry=3, timeout=timedelta(seconds=90))
    async with ours.scheduling(CronEntry("every-second", "@every 1s", Task("t:cron", b"{}"), options)):
        await wait_until(lambda: ours.inspector.enqueue_events("every-second"), description="the entry fired")
        (entry,) = (await asynqmon.get("scheduler_entries"))["entries"]
        events = (await asynqmon.get("scheduler_entries/every-second/enqueue_events"))["events"]
        (first, *_) = reversed(await ours.inspector.enqueue_events("every-second"))
    assert (entry["id"], entry["spec"], entry["task_type"]) == ("every-second", "@every 1s", "t:cron")
    assert entry["options"] == ['Queue("golden")', "MaxRetry(3)", "Timeout(1m30s)"]
    assert events[-1]["task_id"] == first.task_id


async def test_its_buttons_work_on_our_tasks(asynqmon: Asynqmon, ours: PythonSide) -> None:
    async with ours.serving(obey):
        await fill_every_state(ours)
        await asynqmon.send("POST", f"queues/{QUEUE}/scheduled_tasks/scheduled:run")
        await asynqmon.send("POST", f"queues/{QUEUE}/retry_tasks/retry:archive")
        await asynqmon.send("DELETE", f"queues/{QUEUE}/archived_tasks/archived")
        assert await ours.state("scheduled") == "pending"
        assert await ours.state("retry") == "archived"
        assert await ours.state("archived") is None
        await asynqmon.send("POST", f"queues/{QUEUE}/active_tasks/active:cancel")
        await wait_until(lambda: is_in(ours, "active", "retry"), description="the running task is cancelled")
        await asynqmon.send("POST", f"queues/{QUEUE}:resume")
        assert not (await ours.inspector.queues())[0].paused
