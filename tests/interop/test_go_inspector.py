"""Go's Inspector and ours read the same of a queue, and do the same to it."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.interop.programs import GoAsynq
from tests.interop.python_side import QUEUE, PythonSide

from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_types import TaskDetails
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState

HOUR = timedelta(hours=1)
KEYS = queue_keys(QUEUE)
FAR = 4_000_000_000
PLACES = ("scheduled", "retry", "archived", "completed", "g:cards", "g:other")


async def fill_every_state(ours: PythonSide) -> None:
    """Three tasks in each state: ``retry-1`` and so on; the active ones' leases last, lapse and are lost."""
    await ours.broker.register_queue(QUEUE)  # its clients think they did so, before the database was emptied
    kinds = {"retry": AckKind.RETRY, "archived": AckKind.ARCHIVE, "completed": AckKind.COMPLETE}
    for state, kind in kinds.items():
        for number in (1, 2, 3):
            await ours.put(f"{state}-{number}", f"{state}{number}".encode(), retention=HOUR, unique_for=HOUR)
            (task,) = (await ours.broker.dequeue(QUEUE, 1, owner="w")).tasks
            await ours.broker.write_result(QUEUE, task.message.id, b"42")
            await ours.broker.ack(QUEUE, [Ack(kind, task, error="boom", at=FAR + number)])
    for number in (1, 2, 3):
        await ours.put(f"active-{number}", max_retry=number)
    await ours.broker.dequeue(QUEUE, 3, owner="w")
    await ours.redis.execute_command("ZADD", KEYS.lease, 1, "active-2")
    for number in (1, 2, 3):
        payload = str(number).encode()
        await ours.put(f"pending-{number}", payload, unique_for=HOUR, timeout=timedelta(seconds=90))
        await ours.put(f"scheduled-{number}", payload, process_in=number * HOUR, unique_for=HOUR)
        await ours.put(f"aggregating-{number}", payload, group="cards", unique_for=HOUR)
    await ours.put("aggregating-other", group="other")


async def what_we_see(inspector: Inspector) -> dict[str, Any]:
    """In the shape in which the Go program prints what it sees."""
    info = await inspector.queue(QUEUE)
    groups = await inspector.groups(QUEUE)
    names = [state.value for state in TaskState] + ["groups", "size", "paused"]
    names += ["processed_today", "failed_today", "processed_total", "failed_total"]
    shown: list[tuple[TaskState, str, str]] = [
        (TaskState.AGGREGATING, group.group, f"aggregating:{group.group}") for group in groups
    ]
    shown += [(state, "", state.value) for state in TaskState if state is not TaskState.AGGREGATING]
    lists, tasks = {}, {}
    for state, group, name in shown:
        listed = await inspector.list_tasks(QUEUE, state, group=group)
        lists[name] = [task.id for task in listed]
        for task in listed:
            assert plain(await inspector.task(QUEUE, task.id), near=True) == plain(task, near=True)
            tasks[task.id] = plain(task)
    return {
        "queue": {name: getattr(info, name) for name in names},
        "groups": {group.group: group.size for group in groups},
        "history": [[str(day.day), day.processed, day.failed] for day in await inspector.history(QUEUE, 3)],
        "lists": lists,
        "tasks": tasks,
    }


def plain(task: TaskDetails, *, near: bool = False) -> dict[str, Any]:
    """``near``: leave out what is "now" at each reading."""
    is_now = task.state is TaskState.PENDING and near
    return {
        "state": task.state.value,
        "type": task.type,
        "payload": task.payload.hex(),
        "headers": dict(task.headers),
        "max_retry": task.max_retry,
        "retried": task.retried,
        "last_error": task.last_error,
        "last_failed_at": unix(task.last_failed_at),
        "timeout": int(task.timeout.total_seconds()),
        "deadline": unix(task.deadline),
        "group": task.group,
        "retention": int(task.retention.total_seconds()),
        "completed_at": unix(task.completed_at),
        "next_process_at": 0 if is_now else unix(task.next_process_at),
        "result": task.result.decode(),
        "orphaned": task.orphaned,
    }


def unix(instant: datetime | None) -> int:
    return int(instant.timestamp()) if instant is not None else 0


async def hold_both_see_the_same(go: GoAsynq, ours: PythonSide) -> dict[str, Any]:
    """Compare, but for the second at which a pending task is said to run next: now."""
    theirs, mine = await go.run("details", QUEUE), await what_we_see(ours.inspector)
    for task in theirs["tasks"].values():
        task["headers"] = task["headers"] or {}
    for seen in (theirs, mine):
        for task in seen["tasks"].values():
            if task["state"] == "pending":
                task["next_process_at"] = 0
    assert mine == theirs
    return mine


async def places(ours: PythonSide) -> dict[str, Any]:
    """Where every id is, and the state its task says."""
    found: dict[str, Any] = {}
    for name in ("pending", "active"):
        found[name] = await ours.redis.execute_command("LRANGE", KEYS.prefix + name, 0, -1)
    for name in PLACES:
        found[name] = set(await ours.redis.execute_command("ZRANGE", KEYS.prefix + name, 0, -1))
    found["groups"] = set(await ours.redis.execute_command("SMEMBERS", KEYS.groups))
    for key in await ours.redis.execute_command("KEYS", KEYS.task_prefix + "*"):
        found[key.decode()] = await ours.redis.execute_command("HGET", key, "state")
    return found


async def test_both_see_the_same(go: GoAsynq, ours: PythonSide) -> None:
    await fill_every_state(ours)
    await ours.inspector.pause_queue(QUEUE)
    seen = await hold_both_see_the_same(go, ours)
    assert seen["queue"]["size"] == 22
    assert seen["queue"]["paused"]
    assert [name for name, task in seen["tasks"].items() if task["orphaned"]] == ["active-2"]


async def test_both_see_the_same_of_what_go_enqueued(go: GoAsynq, ours: PythonSide) -> None:
    await go.run("enqueue")
    await hold_both_see_the_same(go, ours)


BULK = [
    ("run_all", "scheduled"),
    ("run_all", "retry"),
    ("run_all", "archived"),
    ("run_all", "aggregating"),
    ("archive_all", "pending"),
    ("archive_all", "scheduled"),
    ("archive_all", "retry"),
    ("archive_all", "aggregating"),
    ("delete_all", "pending"),
    ("delete_all", "scheduled"),
    ("delete_all", "retry"),
    ("delete_all", "archived"),
    ("delete_all", "completed"),
    ("delete_all", "aggregating"),
]


@pytest.mark.parametrize(("operation", "state"), BULK)
async def test_bulk_operations_do_what_those_of_go_do(
    go: GoAsynq, ours: PythonSide, operation: str, state: str
) -> None:
    await fill_every_state(ours)
    answer = await go.run("operate", operation, QUEUE, state, "cards")
    assert answer == {"count": 3, "error": ""}
    expected = await places(ours)

    await ours.redis.execute_command("FLUSHALL")
    await fill_every_state(ours)
    report = await getattr(ours.inspector, operation)(QUEUE, TaskState(state), group="cards")
    assert (report.done, report.ghosts, report.left) == (3, 0, 0)
    assert await places(ours) == expected
    await hold_both_see_the_same(go, ours)


One = Callable[[Inspector, str], Awaitable[Any]]
ONE: dict[str, One] = {
    "run": lambda inspector, task_id: inspector.run_task(QUEUE, task_id),
    "archive": lambda inspector, task_id: inspector.archive_task(QUEUE, task_id),
    "delete": lambda inspector, task_id: inspector.delete_task(QUEUE, task_id),
}


@pytest.mark.parametrize("operation", ONE)
async def test_operations_on_one_task_do_what_those_of_go_do(
    go: GoAsynq, ours: PythonSide, operation: str
) -> None:
    """Whatever the state: what Go refuses we refuse, and the queue is the same after."""
    task_ids = [f"{state.value}-2" for state in TaskState] + ["none"]
    await fill_every_state(ours)
    refused_by_go = [
        task_id for task_id in task_ids if (await go.run("operate", operation, QUEUE, task_id))["error"]
    ]
    expected = await places(ours)

    await ours.redis.execute_command("FLUSHALL")
    await fill_every_state(ours)
    refused_by_us = []
    for task_id in task_ids:
        try:
            await ONE[operation](ours.inspector, task_id)
        except AsynqError:
            refused_by_us.append(task_id)
    assert refused_by_us == refused_by_go
    assert await places(ours) == expected
    await hold_both_see_the_same(go, ours)


async def test_payloads_are_updated_alike(go: GoAsynq, ours: PythonSide) -> None:
    await fill_every_state(ours)
    assert not (await go.run("operate", "update", QUEUE, "scheduled-1", "by Go"))["error"]
    await ours.inspector.update_task_payload(QUEUE, "scheduled-2", b"by us")
    assert (await go.run("operate", "update", QUEUE, "retry-1", "x"))["error"]
    with pytest.raises(AsynqError):
        await ours.inspector.update_task_payload(QUEUE, "retry-1", b"x")
    seen = await hold_both_see_the_same(go, ours)
    assert [seen["tasks"][f"scheduled-{number}"]["payload"] for number in (1, 2, 3)] == [
        payload.hex() for payload in (b"by Go", b"by us", b"3")
    ]


async def test_pauses_hold_both_ways(go: GoAsynq, ours: PythonSide) -> None:
    await ours.put("a")
    await ours.inspector.pause_queue(QUEUE)
    assert "already paused" in (await go.run("operate", "pause", QUEUE))["error"]
    assert not (await go.run("operate", "unpause", QUEUE))["error"]
    with pytest.raises(AsynqError):
        await ours.inspector.unpause_queue(QUEUE)


async def test_go_finds_nothing_of_a_queue_we_deleted(go: GoAsynq, ours: PythonSide) -> None:
    await fill_every_state(ours)
    assert "active tasks" in (await go.run("operate", "delete_queue", QUEUE, "force"))["error"]
    with pytest.raises(AsynqError, match="3 个处理中"):
        await ours.inspector.delete_queue(QUEUE, force=True)
    await ours.redis.execute_command("DEL", KEYS.active)
    await ours.inspector.delete_queue(QUEUE, force=True)
    assert "not found" in (await go.run("operate", "delete_queue", QUEUE))["error"]
    assert await ours.redis.execute_command("KEYS", "*") == []


async def test_what_go_leaks_our_check_finds(go: GoAsynq, ours: PythonSide) -> None:
    """Locks of tasks that Go deletes in bulk; a queue that Go deletes with its completed tasks and groups."""
    await fill_every_state(ours)
    await go.run("operate", "delete_all", QUEUE, "pending")
    await go.run("operate", "delete_all", QUEUE, "aggregating", "cards")
    report = await ours.inspector.check(QUEUE, repair=True)
    assert report.counts["stale_lock"] == 6  # type: ignore[index] # members of a StrEnum are their values
    assert (await ours.inspector.check(QUEUE)).total == 0
    await hold_both_see_the_same(go, ours)

    await ours.redis.execute_command("DEL", KEYS.active, KEYS.lease)
    await go.run("operate", "delete_queue", QUEUE, "force")
    left = await ours.redis.execute_command("KEYS", KEYS.prefix + "*")
    assert left
    report = await ours.inspector.check(QUEUE, repair=True)
    assert report.counts["unlisted_queue"] == 1  # type: ignore[index] # as above
    await ours.broker.repair_orphans(QUEUE)
    await hold_both_see_the_same(go, ours)


async def test_go_works_on_what_we_repaired(go: GoAsynq, ours: PythonSide) -> None:
    for number in (1, 2, 3):
        await ours.put(f"{number}")
    await ours.redis.execute_command("LREM", KEYS.pending, 0, "2")
    await ours.redis.execute_command("RPUSH", KEYS.pending, "ghost")
    report = await ours.inspector.check(QUEUE, repair=True)
    assert report.total == 2
    handled = {task["id"] for task in await go.run("serve", QUEUE, "3")}
    assert handled == {"1", "2", "3"}
    assert (await ours.inspector.queue(QUEUE)).size == 0
