"""The check finds and mends every way a queue can be at odds with itself, while it is in use."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_check import CheckReport, Fault, Finding, Remedy
from junhong_cmp.asynq.inspector_errors import QueueNotFoundError
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task

HOUR = timedelta(hours=1)
DAY_S = 86_400


@pytest.fixture
def inspector(redis: Redis) -> Inspector:
    return Inspector(redis, clock=Clock())


async def dump(redis: Redis) -> dict[bytes, bytes | None]:
    return {key: await redis.dump(key) async for key in redis.scan_iter("*")}


async def check_and_mend(redis: Redis, inspector: Inspector) -> CheckReport:
    """Look, hold that nothing changed; mend, hold that the same was told; hold that nothing is left."""
    before = await dump(redis)
    told = await inspector.check(QUEUE)
    assert await dump(redis) == before
    assert not told.repaired
    report = await inspector.check(QUEUE, repair=True)
    assert report.repaired
    assert (report.counts, sorted(report.examples)) == (told.counts, sorted(told.examples))
    assert (await inspector.check(QUEUE)).total == sum(
        finding.remedy is Remedy.KEPT for finding in report.examples
    )
    return report


async def put_all_states(redis: Redis) -> None:
    broker = Broker(redis, clock=Clock())
    await wire.put(redis, "active", "completed", "retry", "archived", options={"retention": HOUR})
    tasks = await wire.take(redis)
    kinds = (AckKind.COMPLETE, AckKind.RETRY, AckKind.ARCHIVE)
    acks = [Ack(kind, task, at=int(NOW) + 60) for kind, task in zip(kinds, tasks[1:], strict=True)]
    await broker.ack(QUEUE, acks)
    await wire.put(redis, "pending", options={"unique_for": HOUR})
    await wire.put(redis, "scheduled", options={"process_in": HOUR})
    await wire.put(redis, "aggregating", options={"group": "g"})
    await wire.put(redis, "in a set", options={"group": "h:1"})
    await redis.rename(PREFIX + "g:h:1", PREFIX + f"g:h:1:{uuid.uuid4()}")
    (key,) = [key async for key in redis.scan_iter(PREFIX + "g:h:1:*")]
    await redis.zadd(PREFIX + "aggregation_sets", {key: NOW + 60})
    await redis.srem(PREFIX + "groups", "h:1")


async def test_a_sound_queue(redis: Redis, inspector: Inspector) -> None:
    await put_all_states(redis)
    before = await dump(redis)
    with capture_logs() as logs:
        report = await inspector.check(QUEUE, repair=True)
    assert (report.total, report.examples, logs) == (0, [], [])
    assert await dump(redis) == before


async def test_there_is_no_such_queue(inspector: Inspector) -> None:
    with pytest.raises(QueueNotFoundError):
        await inspector.check(QUEUE)


async def test_a_queue_that_lost_its_registration(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.delete("asynq:queues")
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.UNLISTED_QUEUE, QUEUE, Remedy.LISTED)]
    assert (await inspector.queue(QUEUE)).pending == 1


@pytest.mark.parametrize("stub", [False, True])
async def test_ids_without_a_task(redis: Redis, inspector: Inspector, stub: bool) -> None:  # noqa: FBT001 - a case
    await put_all_states(redis)
    await redis.rpush(PREFIX + "pending", "1")
    await redis.lpush(PREFIX + "active", "2")
    for number, name in enumerate(("lease", "scheduled", "retry", "archived", "completed", "g:g"), 3):
        await redis.zadd(PREFIX + name, {str(number): NOW + 60})
    if stub:
        for number in range(1, 9):
            await redis.hset(f"{PREFIX}t:{number}", "state", "active")
    report = await check_and_mend(redis, inspector)
    assert report.counts == {Fault.GHOST: 8}
    assert min(report.examples) == Finding(Fault.GHOST, "1", Remedy.DROPPED)
    assert await redis.exists(*(f"{PREFIX}t:{number}" for number in range(1, 9))) == 0
    info = await inspector.queue(QUEUE)
    assert (info.size, info.active) == (7, 1)


async def test_an_id_in_a_place_its_task_is_not_in(redis: Redis, inspector: Inspector) -> None:
    """The second entry of a task goes."""
    await put_all_states(redis)
    await redis.zadd(PREFIX + "retry", {"scheduled": 1, "active": 1, "pending": 1})
    await redis.zadd(PREFIX + "lease", {"archived": NOW + 60})
    await redis.rpush(PREFIX + "pending", "retry", "active")
    await redis.zadd(PREFIX + "g:g", {"completed": 1})
    report = await check_and_mend(redis, inspector)
    assert report.counts == {Fault.MISPLACED: 7}
    assert {finding.remedy for finding in report.examples} == {Remedy.DROPPED}
    assert set(await wire.scores(redis, "retry")) == {"retry"}
    assert await wire.ids(redis, "pending") == ["pending"]


@pytest.mark.parametrize("place", ["scheduled", "retry", "archived", "completed", "g:g", "pending"])
async def test_a_script_that_broke_off_left_the_state_behind(
    redis: Redis, inspector: Inspector, place: str
) -> None:
    """As Go's archive does when it trims too many: the id is in its new place, the state is the old one."""
    await wire.put(redis, "a")
    await wire.take(redis)
    await redis.delete(PREFIX + "active", PREFIX + "lease")
    if place == "pending":
        await redis.lpush(PREFIX + place, "a")
    else:
        await redis.zadd(PREFIX + place, {"a": NOW + 60})
    if place == "g:g":
        await redis.sadd(PREFIX + "groups", "g")
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.MISPLACED, "a", Remedy.ADOPTED)]
    assert await wire.state(redis, "a") == {"g:g": "aggregating"}.get(place, place)
    assert (await wire.fields(redis, "a")).get("group") == (b"g" if place == "g:g" else None)


async def test_active_without_lease_and_lease_without_active(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a", "b")
    await wire.take(redis)
    await redis.zrem(PREFIX + "lease", "a")
    await redis.lrem(PREFIX + "active", 0, "b")
    report = await check_and_mend(redis, inspector)
    assert sorted(report.examples) == [
        Finding(Fault.ACTIVE_WITHOUT_LEASE, "a", Remedy.LEASED),
        Finding(Fault.LEASE_WITHOUT_ACTIVE, "b", Remedy.LISTED),
    ]
    assert await wire.scores(redis, "lease") == {"a": int(NOW), "b": int(NOW) + 30}
    assert set(await wire.ids(redis, "active")) == {"a", "b"}
    expired = await Broker(redis, clock=Clock()).expired_leases(QUEUE, NOW)
    assert [task.message.id for task in expired] == ["a"]


@pytest.mark.parametrize(
    ("state", "remedy", "place"),
    [
        ("pending", Remedy.REQUEUED, "pending"),
        ("active", Remedy.RECOVERING, "lease"),
        ("retry", Remedy.REQUEUED, "retry"),
        ("aggregating", Remedy.REQUEUED, "g:g"),
        ("archived", Remedy.RESTORED, "archived"),
        ("completed", Remedy.RESTORED, "completed"),
        ("scheduled", Remedy.ARCHIVED, "archived"),
        ("unheard of", Remedy.ARCHIVED, "archived"),
    ],
)
async def test_tasks_no_place_holds(
    redis: Redis, inspector: Inspector, state: str, remedy: Remedy, place: str
) -> None:
    await put_all_states(redis)
    if state == "unheard of":
        await redis.hset(PREFIX + "t:retry", "state", state)
    task_id = "retry" if state == "unheard of" else state
    for name in ("pending", "active"):
        await redis.lrem(PREFIX + name, 0, task_id)
    for name in ("lease", "scheduled", "retry", "archived", "completed", "g:g"):
        await redis.zrem(PREFIX + name, task_id)
    await redis.srem(PREFIX + "groups", "g") if state == "aggregating" else None
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.ORPHAN, task_id, remedy)]
    held = await (wire.ids(redis, place) if place == "pending" else wire.scores(redis, place))
    assert task_id in held
    if remedy is Remedy.ARCHIVED:
        task = await inspector.task(QUEUE, task_id)
        assert task.quarantined == ("定时时刻已丢失" if state == "scheduled" else "任务状态未知")
    await inspector.delete_all(QUEUE, TaskState.AGGREGATING, group="g")


async def test_hashes_that_trimming_left_behind(redis: Redis) -> None:
    """Go's inspector trims ids and leaves the hashes: back within the limits, the rest goes, with locks."""
    clock = Clock()
    inspector = Inspector(redis, archive=ArchiveLimits(5, timedelta(days=1)), clock=clock)
    broker = Broker(redis, clock=clock)
    for number in range(10):
        await wire.put(redis, str(number), options={"unique_for": HOUR}, payload=str(number).encode())
    tasks = await wire.take(redis, 10)
    await broker.ack(QUEUE, [Ack(AckKind.ARCHIVE, task) for task in tasks[:8]])
    clock.now -= 2 * DAY_S
    await broker.ack(QUEUE, [Ack(AckKind.ARCHIVE, task) for task in tasks[8:]])
    clock.now += 2 * DAY_S
    await redis.delete(PREFIX + "archived")
    report = await inspector.check(QUEUE, repair=True)
    assert report.counts == {Fault.ORPHAN: 10}
    assert await redis.zcard(PREFIX + "archived") == 5
    left = await wire.keys(redis)
    assert len([key for key in left if key.startswith(PREFIX + "t:")]) == 5
    assert len([key for key in left if key.startswith(PREFIX + "unique:")]) == 5
    assert set((await wire.scores(redis, "archived")).values()) == {int(NOW)}
    assert (await inspector.check(QUEUE)).total == 0


async def test_a_completed_task_past_its_retention(redis: Redis) -> None:
    clock = Clock()
    await wire.put(redis, "a", options={"retention": HOUR})
    (task,) = await wire.take(redis)
    await Broker(redis, clock=clock).ack(QUEUE, [Ack(AckKind.COMPLETE, task)])
    await redis.delete(PREFIX + "completed")
    clock.now += 3601
    report = await check_and_mend(redis, Inspector(redis, clock=clock))
    assert report.examples == [Finding(Fault.ORPHAN, "a", Remedy.DELETED)]
    assert await wire.fields(redis, "a") == {}


async def test_stubs_and_foreign_keys(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.hset(PREFIX + "t:late", "result", "42")
    await redis.set(PREFIX + "t:text", "x")
    await redis.set(PREFIX + "g:text", "x")
    report = await check_and_mend(redis, inspector)
    assert sorted(report.examples) == [
        Finding(Fault.FOREIGN, PREFIX + "g:text", Remedy.KEPT),
        Finding(Fault.FOREIGN, "text", Remedy.KEPT),
        Finding(Fault.STUB, "late", Remedy.DELETED),
    ]


async def test_a_place_of_a_wrong_type_stops_the_check(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.set(PREFIX + "retry", "x")
    await redis.delete(PREFIX + "pending")
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.FOREIGN, PREFIX + "retry", Remedy.KEPT)]


async def test_locks_whose_holder_is_gone(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a", options={"unique_for": HOUR})
    gone = queue_keys(QUEUE).unique("t", b"gone")
    await redis.set(gone, "nobody", ex=3600)
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.STALE_LOCK, gone, Remedy.DELETED)]
    assert [key async for key in redis.scan_iter(PREFIX + "unique:*")] == [
        queue_keys(QUEUE).unique("t", b"{}").encode()
    ]


@pytest.mark.parametrize("registered", [False, True])
async def test_what_aggregations_left(redis: Redis, inspector: Inspector, registered: bool) -> None:  # noqa: FBT001 - a case
    names = [f"{number:03}" for number in range(450)]
    await wire.put(redis, *names, options={"group": "g:1"})
    await redis.zadd(PREFIX + "g:g:1", {"ghost": 5})
    left = f"{PREFIX}g:g:1:{uuid.uuid4()}"
    await redis.rename(PREFIX + "g:g:1", left)
    await redis.srem(PREFIX + "groups", "g:1")
    if registered:
        await redis.zadd(PREFIX + "aggregation_sets", {left: NOW - 1})
    report = await check_and_mend(redis, inspector)
    assert report.examples == [Finding(Fault.STALE_AGGREGATION_SET, left, Remedy.REQUEUED)]
    assert set(await wire.scores(redis, "g:g:1")) == set(names)
    assert await redis.smembers(PREFIX + "groups") == {b"g:1"}
    assert await redis.zcard(PREFIX + "aggregation_sets") == 0
    assert not await redis.exists(left)


async def test_groups_nobody_would_look_at(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a", options={"group": "lost"})
    await redis.srem(PREFIX + "groups", "lost")
    await redis.sadd(PREFIX + "groups", "empty")
    await redis.zadd(PREFIX + "aggregation_sets", {PREFIX + "g:gone:set": NOW - 1})
    report = await check_and_mend(redis, inspector)
    assert sorted(report.examples) == [
        Finding(Fault.EMPTY_GROUP, PREFIX + "g:empty", Remedy.DROPPED),
        Finding(Fault.STALE_AGGREGATION_SET, PREFIX + "g:gone:set", Remedy.REQUEUED),
        Finding(Fault.UNLISTED_GROUP, PREFIX + "g:lost", Remedy.LISTED),
    ]
    assert await redis.smembers(PREFIX + "groups") == {b"lost"}


async def test_examples_are_few_and_counts_are_whole_and_told(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "sound")
    await redis.rpush(PREFIX + "pending", *(f"ghost {number}" for number in range(1000)))
    with capture_logs() as logs:
        report = await inspector.check(QUEUE, repair=True)
    assert (report.total, len(report.examples)) == (1000, 20)
    assert await wire.ids(redis, "pending") == ["sound"]
    assert [(entry["event"], entry["ghost"]) for entry in logs] == [("队列中的不一致已修复", 1000)]


@pytest.mark.single_node("reads one server's statistics of commands")
async def test_orphans_are_told_from_thousands_of_waiting_tasks(redis: Redis, inspector: Inspector) -> None:
    items: list[tuple[Task, EnqueueOptions]] = [
        (Task("t"), EnqueueOptions(queue=QUEUE, task_id=f"{number}")) for number in range(5000)
    ]
    await Client(redis, clock=Clock()).enqueue_many(items)
    lost = [f"{number}" for number in range(0, 5000, 50)]
    for task_id in lost:
        await redis.lrem(PREFIX + "pending", 0, task_id)
    await redis.config_resetstat()
    report = await inspector.check(QUEUE, repair=True)
    scripts: Any = await redis.info("commandstats")
    assert report.counts == {Fault.ORPHAN: 100}
    assert set(await wire.ids(redis, "pending")) == {f"{number}" for number in range(5000)}
    assert await redis.llen(PREFIX + "pending") == 5000
    assert scripts["cmdstat_evalsha"]["usec_per_call"] < 5_000


async def test_a_check_of_a_queue_in_use_disturbs_nothing(redis: Redis) -> None:
    """Workers take, hand back and finish all the while: whatever moves is never taken for lost."""
    client, broker, inspector = Client(redis), Broker(redis), Inspector(redis)
    total, enough, finished = 3000, 2800, 0
    await client.enqueue_many(
        [(Task("t"), EnqueueOptions(queue=QUEUE, task_id=f"{number}")) for number in range(total)]
    )

    async def work() -> None:
        nonlocal finished
        while finished < enough:
            tasks = (await broker.dequeue(QUEUE, 20, owner="w")).tasks
            kinds = [AckKind.REQUEUE if index % 4 == 0 else AckKind.DONE for index in range(len(tasks))]
            await broker.ack(QUEUE, [Ack(kind, task) for kind, task in zip(kinds, tasks, strict=True)])
            finished += kinds.count(AckKind.DONE)

    async def check() -> list[CheckReport]:
        reports = []
        while finished < enough:
            reports.append(await inspector.check(QUEUE, repair=True))
        return reports

    async with asyncio.timeout(30):
        _, reports = await asyncio.gather(work(), check())
    assert reports
    assert [report.examples for report in reports if report.total] == []


async def test_a_message_of_go_is_read_field_by_field(redis: Redis, inspector: Inspector) -> None:
    """The failure time lies behind large payloads, error texts and numbers of many bytes."""
    await wire.put(redis, "a")
    (task,) = await wire.take(redis)
    await Broker(redis, clock=Clock()).ack(QUEUE, [Ack(AckKind.ARCHIVE, task)])
    message = TaskMessage(
        type="t",
        payload=b"\x58" * 70_000,
        id="a",
        queue=QUEUE,
        retry=2**31 - 1,
        error_msg="错" * 300,
        timeout=2**40,
        deadline=2**62,
        unique_key="u" * 200,
        last_failed_at=int(NOW) - 77,
        retention=5,
        headers={"k": "v"},
    )
    await redis.hset(PREFIX + "t:a", "msg", message.SerializeToString())
    await redis.delete(PREFIX + "archived")
    await inspector.check(QUEUE, repair=True)
    assert await wire.scores(redis, "archived") == {"a": int(NOW) - 77}
