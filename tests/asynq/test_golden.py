"""Ours against what the real Asynq v0.26.0 left in Redis, recorded by tests/interop/go (`record`)."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from junhong_cmp.asynq.asynq_pb2 import SchedulerEntry, TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.scheduler import CronEntry, Scheduler
from junhong_cmp.asynq.task import EnqueueOptions, Task

STEPS = json.loads((Path(__file__).parent / "golden" / "asynq-v0.26.0.json").read_text(encoding="utf-8"))
ENQUEUES = [step for step in STEPS if step["name"] == "enqueue"]
OUTCOMES = {step["name"]: step for step in STEPS if step["name"] not in {"enqueue", "scheduler"}}
SCHEDULER = next(step for step in STEPS if step["name"] == "scheduler")


def seconds(value: int | None) -> timedelta | None:
    return timedelta(seconds=value) if value else None


def instant(value: int | None) -> datetime | None:
    return datetime.fromtimestamp(value, UTC) if value else None


def task_of(case: dict[str, Any]) -> tuple[Task, EnqueueOptions]:
    payload = base64.b64decode(case["payload"]) if case["payload"] else b""
    options = EnqueueOptions(
        queue=case["queue"],
        task_id=case["task_id"],
        max_retry=case.get("max_retry", 25),
        timeout=seconds(case.get("timeout")),
        deadline=instant(case.get("deadline")),
        unique_for=seconds(case.get("unique_for")),
        retention=seconds(case.get("retention")),
        process_at=instant(case.get("process_at")),
        group=case.get("group"),
    )
    return Task(case["type"], payload, case.get("headers", {})), options


async def dump(redis: Any) -> dict[str, dict[str, Any]]:
    """The database as ``interop record`` writes it."""
    found: dict[str, dict[str, Any]] = {}
    for key in sorted(await redis.keys("*")):
        kind = (await redis.type(key)).decode()
        one: dict[str, Any] = {"kind": kind, "ttl_s": await redis.ttl(key)}
        if kind == "string":
            one["value"] = await redis.get(key)
        elif kind == "list":
            one["list"] = await redis.lrange(key, 0, -1)
        elif kind == "set":
            one["list"] = sorted(await redis.smembers(key))
        elif kind == "zset":
            one["scores"] = dict(await redis.zrange(key, 0, -1, withscores=True))
        else:
            one["fields"] = await redis.hgetall(key)
        found[key.decode()] = one
    return found


def recorded(step: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for key in step["keys"]:
        one: dict[str, Any] = {"kind": key["kind"], "ttl_s": round(key["ttl_s"])}
        if "value" in key:
            one["value"] = base64.b64decode(key["value"])
        if "list" in key:
            one["list"] = sorted(base64.b64decode(raw) for raw in key["list"])
        if "scores" in key:
            one["scores"] = {member.encode(): score for member, score in key["scores"].items()}
        if "fields" in key:
            one["fields"] = {name.encode(): base64.b64decode(raw) for name, raw in key["fields"].items()}
        found[key["key"]] = one
    return found


def moved_to(at: float, found: dict[str, dict[str, Any]], recorded_at: int) -> dict[str, dict[str, Any]]:
    """The same database as if it had been recorded at another time."""
    then, now = (datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d") for instant in (recorded_at, at))
    moved = {key.replace(then, now): one for key, one in found.items()}
    for one in moved.values():
        if "scores" in one:
            one["scores"] = {member: score + at - recorded_at for member, score in one["scores"].items()}
    return moved


def assert_same(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    """Equal but for the clock: times may differ by a second or two; the caller compares the message."""
    assert set(ours) == set(theirs)
    for key, one in ours.items():
        other = theirs[key]
        assert one["kind"] == other["kind"], key
        assert one.get("value") == other.get("value"), key
        assert one.get("list") == other.get("list"), key
        if "ttl_s" in other and other["ttl_s"] > 0:
            assert one["ttl_s"] == pytest.approx(other["ttl_s"], abs=5), key
        else:
            assert one["ttl_s"] == -1, key
        if "scores" in one:
            assert one["scores"] == pytest.approx(other["scores"], abs=2), key
        if "fields" in one:
            assert set(one["fields"]) == set(other["fields"]), key
            assert one["fields"][b"state"] == other["fields"][b"state"]


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
    step = OUTCOMES[name]
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


async def test_a_scheduler_shows_the_same_entry(redis: Redis) -> None:
    (theirs,) = (key for key in SCHEDULER["keys"] if key["key"].startswith("asynq:schedulers:"))
    original = SchedulerEntry.FromString(base64.b64decode(theirs["list"][0]))
    options = EnqueueOptions(
        queue="golden",
        max_retry=3,
        timeout=timedelta(seconds=90),
        unique_for=timedelta(hours=1),
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
