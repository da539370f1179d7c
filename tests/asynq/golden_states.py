"""What the real Asynq v0.26.0 left in Redis, recorded by tests/interop/go (`record`), and ours beside it."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from junhong_cmp.asynq.task import EnqueueOptions, Task

STEPS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "asynq-v0.26.0.json").read_text(encoding="utf-8")
)
_BASE64 = "base64:"


def step_named(name: str) -> dict[str, Any]:
    return next(step for step in STEPS if step["name"] == name)


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
            one["scores"] = {_member(text): score for text, score in key["scores"].items()}
        if "fields" in key:
            one["fields"] = {name.encode(): base64.b64decode(raw) for name, raw in key["fields"].items()}
        found[key["key"]] = one
    return found


async def restore(redis: Any, found: dict[str, dict[str, Any]]) -> None:
    """Put a recorded database into Redis."""
    for key, one in found.items():
        if one["kind"] == "string":
            await redis.set(key, one["value"])
        elif one["kind"] == "list":
            await redis.rpush(key, *one["list"])
        elif one["kind"] == "set":
            await redis.sadd(key, *one["list"])
        elif one["kind"] == "zset":
            await redis.zadd(key, one["scores"])
        else:
            await redis.hset(key, mapping=one["fields"])


def _member(text: str) -> bytes:
    return base64.b64decode(text.removeprefix(_BASE64)) if text.startswith(_BASE64) else text.encode()


def moved_to(at: float, found: dict[str, dict[str, Any]], recorded_at: int) -> dict[str, dict[str, Any]]:
    """The same database as if it had been recorded at another time."""
    then, now = (datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d") for instant in (recorded_at, at))
    moved = {key.replace(then, now): one for key, one in found.items()}
    for one in moved.values():
        if "scores" in one:
            one["scores"] = {member: score + at - recorded_at for member, score in one["scores"].items()}
    return moved


def assert_same(
    ours: dict[str, dict[str, Any]],
    theirs: dict[str, dict[str, Any]],
    *,
    more: frozenset[bytes] = frozenset(),
) -> None:
    """Equal but for the clock: times may differ by a second or two; the caller compares the message.

    ``more`` are the fields of a task's hash that only ours has; Go leaves them alone.
    """
    assert set(ours) == set(theirs)
    for key, one in ours.items():
        other = theirs[key]
        assert one["kind"] == other["kind"], key
        assert one.get("value") == other.get("value"), key
        assert one.get("list") == other.get("list"), key
        if "ttl_s" in other and other["ttl_s"] > 0:
            passed = 15 if other["ttl_s"] > 60 else 5  # while it was recorded
            assert one["ttl_s"] == pytest.approx(other["ttl_s"], abs=passed), key
        else:
            assert one["ttl_s"] == -1, key
        if "scores" in one:
            assert one["scores"] == pytest.approx(other["scores"], abs=2), key
        if "fields" in one:
            assert set(one["fields"]) == set(other["fields"]) | (
                more if b"state" in other["fields"] else set()
            ), key
            assert one["fields"].get(b"state") == other["fields"].get(b"state"), key
