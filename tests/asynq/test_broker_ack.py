import hashlib
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker import Broker, BrokerLimits
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome, LeasedTask
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

OK, SUPERSEDED, MISSING = AckOutcome.OK, AckOutcome.SUPERSEDED, AckOutcome.MISSING
DAY = "2027-01-15"
MAX_INT64 = 2**63 - 1
UNIQUE = {"unique_for": timedelta(hours=1)}
LOCK = f"{PREFIX}unique:t:{hashlib.md5(b'{}', usedforsecurity=False).hexdigest()}"


@pytest.fixture
def broker(redis: Redis) -> Broker:
    return Broker(redis, clock=Clock())


async def leased(redis: Redis, *task_ids: str, options: dict[str, Any] | None = None) -> list[LeasedTask]:
    await wire.put(redis, *task_ids, options=options)
    return await wire.take(redis)


async def counters(redis: Redis) -> tuple[Any, ...]:
    names = ("processed", f"processed:{DAY}", "failed", f"failed:{DAY}")
    return tuple([await redis.get(PREFIX + name) for name in names])


async def message(redis: Redis, task_id: str) -> TaskMessage:
    return TaskMessage.FromString((await wire.fields(redis, task_id))["msg"])


async def test_done_deletes_the_task_and_counts_it(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task) for task in tasks]) == [OK, OK]
    assert await wire.keys(redis) == set()
    assert await counters(redis) == (b"2", b"2", None, None)
    assert (
        89 * 86_400
        < await redis.ttl(f"{PREFIX}processed:{DAY}") - int(NOW) + await now_s(redis)
        < 91 * 86_400
    )
    assert await redis.ttl(f"{PREFIX}processed") == -1


async def now_s(redis: Redis) -> int:
    return int((await redis.time())[0])


async def test_complete_keeps_the_task_until_its_retention_ends(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a", options={"retention": timedelta(hours=1)})
    await broker.write_result(QUEUE, "a", b"42")
    assert await broker.ack(QUEUE, [Ack(AckKind.COMPLETE, task)]) == [OK]
    assert await wire.scores(redis, "completed") == {"a": int(NOW) + 3600}
    stored = await wire.fields(redis, "a")
    assert (stored["state"], stored["result"], stored.get("owner")) == (b"completed", b"42", None)
    assert (await message(redis, "a")).completed_at == int(NOW)
    assert await wire.ids(redis, "active") == []
    assert await counters(redis) == (b"1", b"1", None, None)


async def test_retry_notes_the_failure(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    ack = Ack(AckKind.RETRY, task, error="boom", at=int(NOW) + 60)
    assert await broker.ack(QUEUE, [ack]) == [OK]
    assert await wire.scores(redis, "retry") == {"a": int(NOW) + 60}
    assert await wire.state(redis, "a") == "retry"
    assert "owner" not in await wire.fields(redis, "a")
    stored = await message(redis, "a")
    assert (stored.retried, stored.error_msg, stored.last_failed_at) == (1, "boom", int(NOW))
    assert await wire.keys(redis) == {PREFIX + "t:a", PREFIX + "retry"}
    assert await counters(redis) == (b"1", b"1", b"1", b"1")


async def test_retry_that_is_no_failure_counts_nothing(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    assert await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, error="later", is_failure=False)]) == [OK]
    assert await wire.scores(redis, "retry") == {"a": int(NOW)}
    stored = await message(redis, "a")
    assert (stored.retried, stored.error_msg) == (0, "later")
    assert await counters(redis) == (None, None, None, None)


async def test_archive_keeps_task_and_lock(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a", options=UNIQUE)
    assert await broker.ack(QUEUE, [Ack(AckKind.ARCHIVE, task, error="boom")]) == [OK]
    assert await wire.scores(redis, "archived") == {"a": int(NOW)}
    assert await wire.state(redis, "a") == "archived"
    stored = await message(redis, "a")
    assert (stored.retried, stored.error_msg, stored.last_failed_at) == (0, "boom", int(NOW))
    assert await redis.get(LOCK) == b"a"
    assert await counters(redis) == (b"1", b"1", b"1", b"1")


@pytest.mark.parametrize(
    ("error", "stored"), [("\udc80 broken", "? broken"), ("卡" * 10_000, "卡" * 2730), ("", "")]
)
async def test_any_error_text_can_be_stored(redis: Redis, broker: Broker, error: str, stored: str) -> None:
    (task,) = await leased(redis, "a")
    assert await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, error=error)]) == [OK]
    assert (await message(redis, "a")).error_msg == stored


async def test_requeue_goes_to_the_head_unchanged(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a")
    await wire.put(redis, "later")
    before = (await wire.fields(redis, "a"))["msg"]
    assert await broker.ack(QUEUE, [Ack(AckKind.REQUEUE, tasks[0])]) == [OK]
    assert await wire.ids(redis, "pending") == ["later", "a"]
    stored = await wire.fields(redis, "a")
    assert stored == {"msg": before, "state": b"pending", "pending_since": str(int(NOW * 1e9)).encode()}
    assert await counters(redis) == (None, None, None, None)


async def test_mixed_kinds_in_one_script(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b", "c", "d", "e")
    await redis.delete(PREFIX + "t:e")
    kinds = [AckKind.DONE, AckKind.RETRY, AckKind.ARCHIVE, AckKind.REQUEUE, AckKind.DONE]
    outcomes = await broker.ack(QUEUE, [Ack(kind, task) for kind, task in zip(kinds, tasks, strict=True)])
    assert outcomes == [OK, OK, OK, OK, MISSING]
    assert await wire.ids(redis, "active") == []
    assert await wire.scores(redis, "lease") == {}
    assert await counters(redis) == (b"3", b"3", b"2", b"2")
    assert await broker.ack(QUEUE, []) == []


@pytest.mark.parametrize("kind", [AckKind.DONE, AckKind.COMPLETE])
async def test_success_frees_the_lock_if_the_task_holds_it(
    redis: Redis, broker: Broker, kind: AckKind
) -> None:
    (task,) = await leased(redis, "a", options=UNIQUE)
    assert await redis.get(LOCK) == b"a"
    assert await broker.ack(QUEUE, [Ack(kind, task)]) == [OK]
    assert not await redis.exists(LOCK)


async def test_success_leaves_the_lock_of_another(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a", options=UNIQUE)
    await redis.set(LOCK, "another")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [OK]
    assert await redis.get(LOCK) == b"another"


async def test_a_lock_outside_the_slot_is_left_alone(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    task.message.unique_key = "elsewhere"
    await redis.set("elsewhere", "a")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [OK]
    assert await redis.get("elsewhere") == b"a"


@pytest.mark.parametrize("kind", list(AckKind))
async def test_a_task_that_changed_hands_is_not_touched(redis: Redis, broker: Broker, kind: AckKind) -> None:
    (task,) = await leased(redis, "a")
    await redis.hset(PREFIX + "t:a", "owner", "the next worker")
    before = await wire.fields(redis, "a")
    assert await broker.ack(QUEUE, [Ack(kind, task)]) == [SUPERSEDED]
    assert await wire.fields(redis, "a") == before
    assert await wire.ids(redis, "active") == ["a"]
    assert await counters(redis) == (None, None, None, None)


async def test_a_go_worker_in_between_is_noticed_by_the_message(redis: Redis, broker: Broker) -> None:
    """Go's recoverer and worker leave our field ``owner`` as it is, but rewrite the message."""
    (task,) = await leased(redis, "a")
    rewritten = TaskMessage()
    rewritten.CopyFrom(task.message)
    rewritten.retried = 1
    await redis.hset(PREFIX + "t:a", "msg", rewritten.SerializeToString())
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [SUPERSEDED]
    assert await wire.state(redis, "a") == "active"


async def test_a_task_that_left_active_is_superseded(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    await redis.hset(PREFIX + "t:a", "state", "archived")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [SUPERSEDED]


async def test_a_task_leased_by_go_is_acked_without_owner(redis: Redis, broker: Broker) -> None:
    await leased(redis, "a")
    await redis.hdel(PREFIX + "t:a", "owner")
    (task,) = await broker.expired_leases(QUEUE, NOW + 60)
    assert await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, error="asynq: task lease expired")]) == [OK]


async def test_a_missing_lease_or_active_entry_does_not_matter(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b")
    await redis.delete(PREFIX + "lease")
    await redis.lrem(PREFIX + "active", 0, "b")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task) for task in tasks]) == [OK, OK]
    assert await wire.keys(redis) == set()


async def test_a_recoverer_yields_to_a_worker_that_renewed(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    ack = Ack(AckKind.RETRY, task, expired_before=int(NOW) + 29)
    assert await broker.ack(QUEUE, [ack]) == [SUPERSEDED]
    ack.expired_before = int(NOW) + 30
    assert await broker.ack(QUEUE, [ack]) == [OK]


async def test_a_recoverer_takes_a_task_without_any_lease(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    await redis.delete(PREFIX + "lease")
    assert await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, expired_before=1)]) == [OK]


@pytest.mark.parametrize("kind", list(AckKind))
async def test_an_ack_repeated_after_a_lost_reply_changes_nothing(
    redis: Redis, broker: Broker, kind: AckKind
) -> None:
    (task,) = await leased(redis, "a")
    assert await broker.ack(QUEUE, [Ack(kind, task)]) == [OK]
    before = {key: await redis.dump(key) for key in await redis.keys("*")}
    (outcome,) = await broker.ack(QUEUE, [Ack(kind, task)])
    assert outcome is (MISSING if kind is AckKind.DONE else SUPERSEDED)
    assert {key: await redis.dump(key) for key in await redis.keys("*")} == before


async def test_a_repeated_ack_does_not_end_the_next_run(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    await broker.ack(QUEUE, [Ack(AckKind.REQUEUE, task)])
    await wire.take(redis)
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [SUPERSEDED]
    assert await wire.state(redis, "a") == "active"


async def test_a_task_key_of_a_wrong_type_counts_as_gone(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b")
    await redis.delete(PREFIX + "t:a")
    await redis.set(PREFIX + "t:a", "x")
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task) for task in tasks]) == [MISSING, OK]


@pytest.mark.parametrize("name", ["active", "lease", "pending", "retry", "archived", "completed"])
async def test_a_list_of_a_wrong_type_fails_before_anything_is_written(
    redis: Redis, broker: Broker, name: str
) -> None:
    tasks = await leased(redis, "a", "b")
    await redis.delete(PREFIX + name)
    await redis.set(PREFIX + name, "x")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await broker.ack(QUEUE, [Ack(AckKind.DONE, task) for task in tasks])
    assert await wire.state(redis, "a") == "active"


async def test_totals_start_anew_together_at_the_end_of_int64(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b")
    await redis.set(PREFIX + "processed", MAX_INT64)
    await redis.set(PREFIX + "failed", 77)
    await broker.ack(QUEUE, [Ack(AckKind.RETRY, tasks[0]), Ack(AckKind.DONE, tasks[1])])
    assert await counters(redis) == (b"2", b"2", b"1", b"1")


async def test_a_counter_of_garbage_never_blocks_an_ack(redis: Redis, broker: Broker) -> None:
    (task,) = await leased(redis, "a")
    await redis.set(f"{PREFIX}processed:{DAY}", "garbage")
    await redis.lpush(PREFIX + "failed", "garbage")
    assert await broker.ack(QUEUE, [Ack(AckKind.RETRY, task)]) == [OK]
    assert await redis.get(PREFIX + "processed") == b"1"


async def test_the_day_counter_expires_once(redis: Redis, broker: Broker) -> None:
    tasks = await leased(redis, "a", "b")
    await broker.ack(QUEUE, [Ack(AckKind.DONE, tasks[0])])
    await redis.persist(f"{PREFIX}processed:{DAY}")
    await broker.ack(QUEUE, [Ack(AckKind.DONE, tasks[1])])
    assert await redis.ttl(f"{PREFIX}processed:{DAY}") == -1


async def seed_archive(redis: Redis, count: int, score: float) -> None:
    pipe = redis.pipeline(transaction=False)
    for number in range(count):
        pipe.zadd(PREFIX + "archived", {f"old{number:05}": score + number / count})
        pipe.hset(f"{PREFIX}t:old{number:05}", mapping={"msg": b"x", "state": "archived"})
    await pipe.execute()


async def test_the_archive_is_trimmed_by_age_in_steps_with_hash_and_lock(
    redis: Redis, broker: Broker
) -> None:
    """Go unpacks the whole list and fails for ever from some 8 000 on."""
    await seed_archive(redis, 9000, 0)
    await redis.hset(PREFIX + "t:old00000", "unique_key", PREFIX + "unique:t:held")
    await redis.hset(PREFIX + "t:old00001", "unique_key", PREFIX + "unique:t:lost")
    await redis.mset({PREFIX + "unique:t:held": "old00000", PREFIX + "unique:t:lost": "another"})
    tasks = await leased(redis, *(f"n{number}" for number in range(10)))
    sizes = []
    for task in tasks:
        assert await broker.ack(QUEUE, [Ack(AckKind.ARCHIVE, task)]) == [OK]
        sizes.append(await redis.zcard(PREFIX + "archived"))
    assert sizes[:2] == [8001, 7002]
    assert sizes[-1] == 10
    assert len(await wire.keys(redis)) == 10 + 1 + 1
    assert await redis.mget(PREFIX + "unique:t:held", PREFIX + "unique:t:lost") == [None, b"another"]


async def test_the_archive_keeps_exactly_its_size(redis: Redis) -> None:
    broker = Broker(redis, clock=Clock(), limits=BrokerLimits(archive_size=5))
    await seed_archive(redis, 5, NOW - 100)
    tasks = await leased(redis, "a", "b")
    await broker.ack(QUEUE, [Ack(AckKind.ARCHIVE, task) for task in tasks])
    assert set(await wire.scores(redis, "archived")) == {"old00002", "old00003", "old00004", "a", "b"}
    assert not await redis.exists(PREFIX + "t:old00000", PREFIX + "t:old00001")


async def test_more_acks_than_one_script_takes(redis: Redis, broker: Broker) -> None:
    await Client(redis).enqueue_many([(Task("t"), EnqueueOptions(queue=QUEUE))] * 1100)
    tasks = await wire.take(redis, 1100)
    outcomes = await broker.ack(QUEUE, [Ack(AckKind.DONE, task) for task in tasks])
    assert outcomes == [OK] * 1100
    assert await wire.keys(redis) == set()
