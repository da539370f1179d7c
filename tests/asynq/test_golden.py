"""Ours against what the real Asynq v0.26.0 left in Redis when it enqueued, acknowledged and scheduled."""

import base64
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.asynq.golden_states import STEPS, assert_same, dump, moved_to, recorded, step_named, task_of

from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent, SchedulerEntry, TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.go_text import format_options
from junhong_cmp.asynq.scheduler import CronEntry, Scheduler
from junhong_cmp.asynq.scheduler_view import SchedulerView
from junhong_cmp.asynq.task import EnqueueOptions, Task

ENQUEUES = [step for step in STEPS if step["name"] == "enqueue"]
SCHEDULER = step_named("scheduler")
HOUR = timedelta(hours=1)
FAR_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("step", ENQUEUES, ids=[step["case"]["name"] for step in ENQUEUES])
async def test_enqueueing_leaves_the_same_bytes(redis: Redis, step: dict[str, Any]) -> None:
    task, options = task_of(step["case"])
    await Client(redis, clock=lambda: float(step["at"])).enqueue(task, options)
    ours, theirs = await dump(redis), recorded(step)
    hash_key = f"asynq:{{golden}}:t:{options.task_id}"
    if step["case"]["name"] == "group unique":
        # Go leaves this field out for groups, and so its lock is not freed when the task is deleted.
        theirs[hash_key]["fields"][b"unique_key"] = ours[hash_key]["fields"][b"unique_key"]
    assert_same(ours, theirs)
    stored, original = ours[hash_key]["fields"], theirs[hash_key]["fields"]
    assert stored[b"msg"] == original[b"msg"]
    assert stored.get(b"unique_key") == original.get(b"unique_key")
    assert stored.get(b"group") == original.get(b"group")
    assert len(stored.get(b"pending_since", b"")) == len(original.get(b"pending_since", b""))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("done", AckKind.DONE),
        ("fail", AckKind.RETRY),
        ("skip", AckKind.ARCHIVE),
        ("result", AckKind.COMPLETE),
    ],
)
async def test_handing_back_leaves_the_same_state(redis: Redis, name: str, kind: AckKind) -> None:
    step = step_named(name)
    # Day counters expire by the server's clock, so this cannot be played at the time of the recording.
    at = time.time()
    theirs = moved_to(at, recorded(step), step["at"])
    task, options = task_of(step["case"])
    broker = Broker(redis, clock=lambda: at)
    await Client(redis, clock=lambda: at).enqueue(task, options)
    (leased,) = (await broker.dequeue("golden", 1, owner="w")).tasks
    if name == "result":
        await broker.write_result("golden", "id", b"42", token=leased.token)
    fields = theirs.get("asynq:{golden}:t:id", {}).get("fields", {})
    original = TaskMessage.FromString(fields.get(b"msg", b""))
    await broker.ack("golden", [Ack(kind, leased, error=original.error_msg, at=int(at) + 3600)])

    ours = await dump(redis)
    assert_same(ours, theirs)
    if name != "done":
        ours_message = TaskMessage.FromString(ours["asynq:{golden}:t:id"]["fields"][b"msg"])
        for volatile in ("last_failed_at", "completed_at"):
            expected = getattr(original, volatile)
            shift = int(at) - step["at"] if expected else 0
            assert getattr(ours_message, volatile) == pytest.approx(expected + shift, abs=2)
            ours_message.ClearField(volatile)
            original.ClearField(volatile)
        assert ours_message == original


def entries_of_go() -> list[SchedulerEntry]:
    (theirs,) = (key for key in SCHEDULER["keys"] if key["key"].startswith("asynq:schedulers:"))
    return [SchedulerEntry.FromString(base64.b64decode(raw)) for raw in theirs["list"]]


async def test_a_scheduler_shows_the_same_entry(redis: Redis) -> None:
    (theirs,) = (key for key in SCHEDULER["keys"] if key["key"].startswith("asynq:schedulers:"))
    original = next(entry for entry in entries_of_go() if "MaxRetry(3)" in entry.enqueue_options)
    options = EnqueueOptions(
        queue="golden",
        max_retry=3,
        timeout=timedelta(seconds=90),
        unique_for=HOUR,
        retention=timedelta(hours=2),
    )
    entry = CronEntry(original.id, original.spec, Task("golden:cron", b"{}"), options)
    scheduler = Scheduler(redis, [entry], clock=lambda: float(SCHEDULER["at"]))
    await scheduler._turn()
    raw: Any = await redis.lrange(scheduler._view._keys.scheduler, 0, -1)
    assert SchedulerEntry.FromString(raw[0]) == original
    shape = scheduler._view._keys.scheduler.count(":")
    assert shape == theirs["key"].count(":")
    assert await redis.zscore("asynq:schedulers", scheduler._view._keys.scheduler) == SCHEDULER["at"] + 20


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("Group(", {"queue": "golden", "deadline": FAR_FUTURE, "group": 'a "b"', "process_in": HOUR / 12}),
        ("ProcessAt(", {"queue": "卡\n", "process_at": FAR_FUTURE, "timeout": timedelta(seconds=1.5)}),
    ],
)
def test_every_kind_of_option_reads_the_same(mark: str, options: dict[str, Any]) -> None:
    original = next(
        entry for entry in entries_of_go() if any(text.startswith(mark) for text in entry.enqueue_options)
    )
    assert sorted(format_options(EnqueueOptions(**options))) == sorted(original.enqueue_options)


async def test_the_history_of_an_entry_has_the_same_bytes(redis: Redis) -> None:
    theirs = recorded(step_named("history"))
    (key,) = (name for name in theirs if name.startswith("asynq:scheduler_history:"))
    ((member, score),) = theirs[key]["scores"].items()
    event = SchedulerEnqueueEvent.FromString(member)
    fired_at = event.enqueue_time.seconds + event.enqueue_time.nanos / 1e9
    await SchedulerView(redis).record(key.rpartition(":")[2], event.task_id, fired_at)
    ((ours, our_score),) = (await dump(redis))[key]["scores"].items()
    assert our_score == score
    written = SchedulerEnqueueEvent.FromString(ours)
    # Our clocks count in floats, which cannot tell single nanoseconds at this distance from 1970.
    assert abs(written.enqueue_time.nanos - event.enqueue_time.nanos) < 1000
    written.enqueue_time.nanos = event.enqueue_time.nanos
    assert written.SerializeToString(deterministic=True) == member
