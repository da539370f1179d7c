import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.broker import Broker, BrokerLimits
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task


@pytest.fixture
def broker(redis: Redis) -> Broker:
    return Broker(redis, clock=Clock())


async def test_dequeue_takes_the_oldest_and_leases_them(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a", "b", "c")

    result = await broker.dequeue(QUEUE, 2, owner="host:1")

    assert [task.message.id for task in result.tasks] == ["a", "b"]
    assert not result.paused
    assert await wire.ids(redis, "pending") == ["c"]
    assert await wire.ids(redis, "active") == ["b", "a"]
    assert await wire.scores(redis, "lease") == {"a": int(NOW) + 30, "b": int(NOW) + 30}
    stored = await wire.fields(redis, "a")
    assert stored["state"] == b"active"
    assert stored["owner"].decode() == result.tasks[0].token
    assert "pending_since" not in stored
    assert result.tasks[0].token.startswith("host:1:")
    assert result.tasks[0].lease_until == int(NOW) + 30


async def test_two_dequeues_never_share_a_token(redis: Redis) -> None:
    await wire.put(redis, "a", "b")
    first = await Broker(redis).dequeue(QUEUE, 1, owner="same")
    second = await Broker(redis).dequeue(QUEUE, 1, owner="same")
    assert first.tasks[0].token != second.tasks[0].token


@pytest.mark.parametrize("count", [0, -1])
async def test_no_free_slot_takes_nothing(redis: Redis, broker: Broker, count: int) -> None:
    await wire.put(redis, "a")
    assert (await broker.dequeue(QUEUE, count, owner="w")).tasks == []
    assert await wire.ids(redis, "pending") == ["a"]


async def test_a_paused_queue_gives_nothing(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await broker.pause(QUEUE)
    result = await broker.dequeue(QUEUE, 5, owner="w")
    assert result.paused
    assert result.tasks == []
    assert await wire.ids(redis, "pending") == ["a"]


async def test_ghosts_are_skipped_and_dropped(redis: Redis, broker: Broker) -> None:
    await redis.lpush(PREFIX + "pending", "gone")
    await redis.hset(PREFIX + "t:stub", "result", "x")
    await redis.lpush(PREFIX + "pending", "stub")
    await wire.put(redis, "a")

    result = await broker.dequeue(QUEUE, 1, owner="w")

    assert [task.message.id for task in result.tasks] == ["a"]
    assert result.ghosts == ["gone", "stub"]
    assert await wire.ids(redis, "active") == ["a"]
    assert not await redis.exists(PREFIX + "t:stub")


async def test_an_id_twice_in_pending_runs_once(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await redis.lpush(PREFIX + "pending", "a")
    result = await broker.dequeue(QUEUE, 5, owner="w")
    assert [task.message.id for task in result.tasks] == ["a"]
    assert result.ghosts == ["a"]
    assert await wire.ids(redis, "active") == ["a"]


async def test_a_hash_of_a_wrong_type_is_reported_and_skipped(redis: Redis, broker: Broker) -> None:
    await redis.set(PREFIX + "t:bad", "not a hash")
    await redis.lpush(PREFIX + "pending", "bad")
    await wire.put(redis, "a")
    result = await broker.dequeue(QUEUE, 5, owner="w")
    assert [task.message.id for task in result.tasks] == ["a"]
    assert result.quarantined == [("bad", "任务键的类型不是哈希")]
    assert await wire.ids(redis, "active") == ["a"]


async def test_a_message_too_large_is_archived_unread(redis: Redis) -> None:
    await wire.put(redis, "big", payload=b"x" * 5000)
    await wire.put(redis, "a")
    broker = Broker(redis, limits=BrokerLimits(max_message_bytes=4096), clock=Clock())

    result = await broker.dequeue(QUEUE, 5, owner="w")

    assert [task.message.id for task in result.tasks] == ["a"]
    assert result.quarantined == [("big", "任务消息过大")]
    assert await wire.scores(redis, "archived") == {"big": int(NOW)}
    stored = await wire.fields(redis, "big")
    assert (stored["state"], stored["quarantined"]) == (b"archived", b"size")
    assert len(stored["msg"]) > 5000
    assert await wire.ids(redis, "active") == ["a"]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"type":"t","id":"bad"}', "无法解码任务消息"),
        (b"\x1a\x03abc\x22\x01q\x0a\x01t", "消息中的任务编号与键不符"),
        (b"\x1a\x03bad\x22\x01z\x0a\x01t", "消息中的队列与所在队列不符"),
        (b"\x1a\x03bad\x22\x01q", "消息中的任务类型为空"),
        (b"\x1a\x03bad\x22\x01q\x0a\x01t\x40" + b"\xff" * 9 + b"\x01", "消息中的时限、次数或保留时长为负"),
    ],
)
async def test_an_unusable_message_is_quarantined_and_stops_nothing(
    redis: Redis, broker: Broker, raw: bytes, reason: str
) -> None:
    await redis.hset(PREFIX + "t:bad", mapping={"msg": raw, "state": "pending"})
    await redis.lpush(PREFIX + "pending", "bad")
    await wire.put(redis, "a")

    result = await broker.dequeue(QUEUE, 5, owner="w")

    assert [task.message.id for task in result.tasks] == ["a"]
    assert result.quarantined == [("bad", reason)]
    assert await wire.scores(redis, "archived") == {"bad": int(NOW)}
    assert await wire.scores(redis, "lease") == {"a": int(NOW) + 30}
    stored = await wire.fields(redis, "bad")
    assert stored == {"msg": raw, "state": b"archived", "quarantined": reason.encode()}


@pytest.mark.parametrize("name", ["active", "lease", "archived"])
async def test_a_key_of_a_wrong_type_fails_before_anything_is_written(
    redis: Redis, broker: Broker, name: str
) -> None:
    await wire.put(redis, "a")
    await redis.set(PREFIX + name, "x")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await broker.dequeue(QUEUE, 1, owner="w")
    assert await wire.ids(redis, "pending") == ["a"]
    assert await wire.state(redis, "a") == "pending"


async def test_extending_renews_what_is_owned_and_names_what_is_lost(redis: Redis) -> None:
    clock = Clock()
    broker = Broker(redis, clock=clock)
    await wire.put(redis, "kept", "stolen", "moved", "changed", "gone")
    tasks = (await broker.dequeue(QUEUE, 5, owner="w")).tasks
    await redis.hset(PREFIX + "t:stolen", "owner", "somebody")
    await redis.hset(PREFIX + "t:moved", "state", "retry")
    await redis.hset(PREFIX + "t:changed", "msg", b"rewritten by a Go recoverer")
    await redis.delete(PREFIX + "t:gone")
    clock.now += 10

    lost = await broker.extend_leases(QUEUE, tasks)

    assert lost == ["stolen", "moved", "changed", "gone"]
    assert (await wire.scores(redis, "lease"))["kept"] == int(NOW) + 40
    assert (await wire.scores(redis, "lease"))["stolen"] == int(NOW) + 30
    assert [task.lease_until for task in tasks] == [int(NOW) + 40] + [int(NOW) + 30] * 4


async def test_extending_restores_a_lease_that_was_evicted(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    tasks = (await broker.dequeue(QUEUE, 1, owner="w")).tasks
    await redis.delete(PREFIX + "lease")
    assert await broker.extend_leases(QUEUE, tasks) == []
    assert await wire.scores(redis, "lease") == {"a": int(NOW) + 30}
    assert await broker.extend_leases(QUEUE, []) == []


async def test_expired_leases_come_back_with_their_owner(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a", "b")
    taken = (await broker.dequeue(QUEUE, 2, owner="w")).tasks
    await redis.zadd(PREFIX + "lease", {"b": NOW + 500})

    found = await broker.expired_leases(QUEUE, NOW + 31)

    assert [task.message.id for task in found] == ["a"]
    assert (found[0].token, found[0].digest) == (taken[0].token, taken[0].digest)
    assert found[0].lease_until == int(NOW) + 30
    assert await broker.expired_leases(QUEUE, NOW + 29) == []


async def test_a_lease_taken_by_go_has_no_owner(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await broker.dequeue(QUEUE, 1, owner="w")
    await redis.hdel(PREFIX + "t:a", "owner")
    assert [task.token for task in await broker.expired_leases(QUEUE, NOW + 31)] == [""]


async def test_leases_that_stand_for_nothing_are_dropped(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a", "moved", "wrong")
    await broker.dequeue(QUEUE, 3, owner="w")
    await redis.hset(PREFIX + "t:moved", "state", "retry")
    await redis.delete(PREFIX + "t:wrong")
    await redis.set(PREFIX + "t:wrong", "not a hash")
    await redis.zadd(PREFIX + "lease", {"gone": NOW})
    await redis.lpush(PREFIX + "active", "gone")

    found = await broker.expired_leases(QUEUE, NOW + 60)

    assert [task.message.id for task in found] == ["a"]
    assert set(await wire.scores(redis, "lease")) == {"a"}
    assert set(await wire.ids(redis, "active")) == {"a", "moved"}


@pytest.mark.parametrize("raw", [b"\xff\xff", b"x" * 5000])
async def test_one_bad_message_never_stops_recovery(redis: Redis, raw: bytes) -> None:
    broker = Broker(redis, limits=BrokerLimits(max_message_bytes=4096), clock=Clock())
    await wire.put(redis, "bad", "a")
    await broker.dequeue(QUEUE, 2, owner="w")
    await redis.hset(PREFIX + "t:bad", "msg", raw)

    with capture_logs() as logs:
        found = await broker.expired_leases(QUEUE, NOW + 60)

    assert [(log["event"], log["task_id"]) for log in logs] == [("任务无法解码，已隔离", "bad")]
    assert [task.message.id for task in found] == ["a"]
    assert set(await wire.scores(redis, "archived")) == {"bad"}
    assert set(await wire.ids(redis, "active")) == {"a"}
    assert await wire.state(redis, "bad") == "archived"


async def test_expired_leases_are_limited_oldest_first(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a", "b", "c")
    await broker.dequeue(QUEUE, 3, owner="w")
    await redis.zadd(PREFIX + "lease", {"c": NOW - 100, "a": NOW - 50})
    found = await broker.expired_leases(QUEUE, NOW + 60, limit=2)
    assert [task.message.id for task in found] == ["c", "a"]


async def test_quarantine_leaves_a_task_that_changed_hands(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await broker.dequeue(QUEUE, 1, owner="w")
    moved = await broker._leases._quarantine(QUEUE, [(b"a", "another owner", "x"), (b"gone", "", "x")])
    assert moved == []
    assert await wire.state(redis, "a") == "active"
    assert await wire.scores(redis, "archived") == {}


async def test_a_result_is_stored_only_while_the_task_is_in_work(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    assert not await broker.write_result(QUEUE, "a", b"too early")
    (task,) = (await broker.dequeue(QUEUE, 1, owner="w")).tasks
    assert await broker.write_result(QUEUE, "a", b"by anyone")
    assert await broker.write_result(QUEUE, "a", b"by the owner", token=task.token)
    assert not await broker.write_result(QUEUE, "a", b"by another", token="other")
    assert (await wire.fields(redis, "a"))["result"] == b"by the owner"
    assert not await broker.write_result(QUEUE, "gone", b"x")
    assert not await redis.exists(PREFIX + "t:gone")


async def test_a_large_batch_fits_in_one_script(redis: Redis, broker: Broker) -> None:
    await Client(redis).enqueue_many([(Task("t"), EnqueueOptions(queue=QUEUE))] * 1200)
    tasks = (await broker.dequeue(QUEUE, 1200, owner="w")).tasks
    assert len(tasks) == 1200
    assert await broker.extend_leases(QUEUE, tasks) == []
