"""Groups of tasks become one task each; whatever is interrupted leaves nothing behind and nothing twice."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import QUICK, Bench, Recorder, open_bench
from tests.faultproxy import FaultProxy
from tests.waiting import wait_until

from junhong_cmp.asynq.aggregation import Aggregation, AggregationError, GroupAggregator
from junhong_cmp.asynq.aggregator import Aggregator
from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_groups import Groups
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.asynq.task import EnqueueOptions, Task

KEYS = queue_keys("default")
COMMIT = LuaScript.load("junhong_cmp.asynq", "_lock", "_enqueue", "commit_group").sha1.encode()


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


def join(group: str, tasks: Sequence[Task]) -> Task:
    return Task(f"joined:{group}", b",".join(sorted(task.payload for task in tasks)))


async def put(bench: Bench, group: str, *payloads: str, **options: Any) -> None:
    for payload in payloads:
        task = Task("part", payload.encode(), {"n": payload})
        await bench.client.enqueue(task, EnqueueOptions(group=group, **options))


async def age(bench: Bench, group: str, seconds: float) -> None:
    """Make the tasks of a group older."""
    for task_id in await bench.redis.execute_command("ZRANGE", KEYS.group(group), 0, -1):
        await bench.redis.execute_command("ZINCRBY", KEYS.group(group), -seconds, task_id)


def ripe(aggregator: GroupAggregator = join, **rules: Any) -> Aggregation:
    """Rules by which a group of any size is ready a second after its last task."""
    return Aggregation(aggregator=aggregator, **{"grace": timedelta(seconds=1), **rules})


def make(
    bench: Bench, rules: Aggregation, groups: Groups | None = None, queues: Sequence[str] = ("default",)
) -> Aggregator:
    own = groups if groups is not None else Groups(bench.redis, 1 << 20)
    return Aggregator(own, rules, queues, timedelta(seconds=0.2))


async def round_of(bench: Bench, rules: Aggregation, groups: Groups | None = None) -> None:
    await make(bench, rules, groups)._round()


async def messages(bench: Bench, state: str = "pending") -> list[TaskMessage]:
    found = []
    for task_id in await bench.ids(state):
        raw = await bench.field(task_id, "msg")
        assert raw is not None
        found.append(TaskMessage.FromString(raw))
    return found


async def leftovers(bench: Bench) -> list[bytes]:
    """Keys of tasks, groups, sets and locks."""
    found = await bench.keys("asynq:{default}:*")
    return [key for key in found if b":processed" not in key and b":failed" not in key]


async def test_a_group_becomes_one_task_that_is_processed(bench: Bench) -> None:
    recorder = Recorder()
    asked: list[tuple[str, list[Task]]] = []

    async def aggregate(group: str, tasks: Sequence[Task]) -> tuple[Task, EnqueueOptions]:
        asked.append((group, list(tasks)))
        await asyncio.sleep(0.01)
        return join(group, tasks), EnqueueOptions(queue="elsewhere", max_retry=3)

    await put(bench, "g", "a", "b", "c")
    await bench.serve(recorder, aggregation=ripe(aggregate))
    await wait_until(lambda: recorder.seen, description="the joined task is processed")
    task = recorder.seen[0]
    assert (task.type, task.payload, task.queue, task.max_retry) == ("joined:g", b"a,b,c", "default", 3)
    ((group, parts),) = asked
    assert group == "g"
    assert sorted(parts, key=lambda part: part.payload) == [Task("part", p.encode(), {"n": p}) for p in "abc"]
    await bench.wait_size("active", 0)
    assert await leftovers(bench) == []
    assert await bench.counter("processed") == 1


@pytest.mark.parametrize(
    ("rules", "added_ago", "expected"),
    [
        ({"grace": timedelta(minutes=1)}, 30, []),
        ({"grace": timedelta(minutes=1)}, 61, [b"a,b,c,d,e"]),
        ({"grace": timedelta(minutes=9), "max_delay": timedelta(minutes=1)}, 61, [b"a,b,c,d,e"]),
        ({"grace": timedelta(minutes=9), "max_delay": timedelta(minutes=1)}, 30, []),
        ({"grace": timedelta(minutes=9), "max_size": 2}, 0, [b"a,b", b"c,d"]),
        ({"grace": timedelta(minutes=9), "max_size": 5}, 0, [b"a,b,c,d,e"]),
        ({"grace": timedelta(minutes=9), "max_size": 6}, 0, []),
        ({"grace": timedelta(seconds=1), "max_size": 2}, 30, [b"a,b", b"c,d", b"e"]),
    ],
)
async def test_a_group_is_ready_by_its_pause_its_age_or_its_size(
    bench: Bench, rules: dict[str, Any], added_ago: int, expected: list[bytes]
) -> None:
    await put(bench, "g", *"abcde")
    for index, task_id in enumerate(await bench.redis.execute_command("ZRANGE", KEYS.group("g"), 0, -1)):
        raw = await bench.field(task_id.decode(), "msg")
        assert raw is not None
        rank = ord(TaskMessage.FromString(raw).payload) - ord("a")
        added_at = int(time.time()) - added_ago + (rank if added_ago > 60 and "max_delay" in rules else 0)
        await bench.redis.execute_command("ZADD", KEYS.group("g"), added_at + rank * 1e-3, task_id)
        assert index < 5
    await round_of(bench, Aggregation(aggregator=join, **rules))
    assert [message.payload for message in reversed(await messages(bench))] == expected
    left = await bench.redis.execute_command("ZCARD", KEYS.group("g"))
    assert left == 5 - sum(len(payload.split(b",")) for payload in expected)
    assert await bench.redis.execute_command("SCARD", KEYS.groups) == (1 if left else 0)
    assert await bench.redis.execute_command("ZCARD", KEYS.aggregation_sets) == 0


async def test_the_locks_of_the_tasks_are_freed_go_ones_too(bench: Bench) -> None:
    await put(bench, "g", "a", "b", unique_for=timedelta(hours=1))
    (_, second) = await bench.redis.execute_command("ZRANGE", KEYS.group("g"), 0, -1)
    await bench.redis.execute_command("HDEL", KEYS.task(second.decode()), "unique_key")  # as Go leaves it
    await age(bench, "g", 60)
    assert len(await bench.keys("*:unique:*")) == 2
    await round_of(bench, ripe())
    assert await bench.keys("*:unique:*") == []


async def test_a_task_may_stand_for_itself_under_its_own_lock(bench: Bench) -> None:
    await put(bench, "g", "a", unique_for=timedelta(hours=1))
    await age(bench, "g", 60)
    await round_of(bench, ripe(lambda _, tasks: (tasks[0], EnqueueOptions(unique_for=timedelta(minutes=5)))))
    (message,) = await messages(bench)
    assert (message.type, message.payload) == ("part", b"a")
    (lock,) = await bench.keys("*:unique:*")
    assert await bench.redis.execute_command("GET", lock) == message.id.encode()


async def fail(_group: str, _tasks: Sequence[Task]) -> Task:
    raise ZeroDivisionError


async def give_nothing(_group: str, _tasks: Sequence[Task]) -> Any:
    return None


async def cancel_itself(_group: str, _tasks: Sequence[Task]) -> Task:
    raise asyncio.CancelledError


async def leave(_group: str, _tasks: Sequence[Task]) -> Task:
    raise SystemExit(1)


def invalid(_group: str, _tasks: Sequence[Task]) -> Task:
    return Task(" ")


def huge(_group: str, _tasks: Sequence[Task]) -> Task:
    return Task("x", bytes(2 << 20))


@pytest.mark.parametrize("aggregator", [fail, give_nothing, cancel_itself, leave, invalid, huge])
async def test_a_callback_that_fails_keeps_the_tasks(bench: Bench, aggregator: GroupAggregator) -> None:
    await put(bench, "g", "a", "b", unique_for=timedelta(hours=1))
    await age(bench, "g", 60)
    groups = Groups(bench.redis, 1 << 20)
    with capture_logs() as logs:
        await round_of(bench, ripe(aggregator), groups)
    assert [entry["event"] for entry in logs] == ["分组汇总失败，任务保留，稍后重试"]
    ((_, deadline),) = [
        await bench.redis.execute_command("ZRANGE", KEYS.aggregation_sets, 0, -1, "WITHSCORES")
    ]
    assert 100 < float(deadline) - time.time() <= 120
    await round_of(bench, ripe())  # not at once again: a callback that fails is not asked in a loop
    assert await bench.size("pending") == 0
    later = Groups(bench.redis, 1 << 20, clock=lambda: time.time() + 121)
    assert await later.reclaim("default") == 2
    assert await groups.names("default") == [b"g"]
    await round_of(bench, ripe())
    (message,) = await messages(bench)
    assert message.payload == b"a,b"
    assert sorted(await leftovers(bench)) == sorted([KEYS.pending.encode(), KEYS.task(message.id).encode()])


async def test_a_conflict_of_the_new_task_keeps_the_tasks(bench: Bench) -> None:
    await bench.client.enqueue(Task("joined:g"), EnqueueOptions(task_id="taken"))
    await put(bench, "g", "a")
    await age(bench, "g", 60)
    with capture_logs() as logs:
        await round_of(
            bench, ripe(lambda group, tasks: (join(group, tasks), EnqueueOptions(task_id="taken")))
        )
    assert [(entry["event"], entry["outcome"]) for entry in logs] == [
        ("汇总出的任务与已有任务冲突，分组任务保留", "ID_CONFLICT")
    ]
    assert await bench.redis.execute_command("ZCARD", KEYS.aggregation_sets) == 1


@pytest.mark.single_node("the proxy stands before one server")
async def test_a_lost_reply_at_the_end_neither_repeats_nor_loses(bench: Bench) -> None:
    async with FaultProxy(bench.url) as proxy:
        shaky = open_redis(proxy.url)
        await put(bench, "warm", "x")
        await age(bench, "warm", 60)
        await round_of(bench, ripe(), Groups(shaky, 1 << 20))  # the server knows the scripts now
        await put(bench, "g", "a", "b")
        await age(bench, "g", 60)
        proxy.cut_after(COMMIT)
        await round_of(bench, ripe(), Groups(shaky, 1 << 20))
        assert proxy.cuts == 1
        await shaky.aclose()
    assert [message.payload for message in await messages(bench)] == [b"a,b", b"x"]
    assert await bench.redis.execute_command("ZCARD", KEYS.aggregation_sets) == 0


async def test_a_set_taken_back_meanwhile_is_not_committed(bench: Bench) -> None:
    await put(bench, "g", "a")
    await age(bench, "g", 60)
    later = Groups(bench.redis, 1 << 20, clock=lambda: time.time() + 121)

    async def slow(group: str, tasks: Sequence[Task]) -> Task:
        assert await later.reclaim("default") == 1  # another server, while this one slept
        return join(group, tasks)

    await round_of(bench, ripe(slow))
    assert await bench.size("pending") == 0
    await round_of(bench, ripe())
    assert [message.payload for message in await messages(bench)] == [b"a"]


async def test_a_bad_message_is_set_aside_and_a_ghost_forgotten(bench: Bench) -> None:
    await put(bench, "g", "bad", "ghost", "good", "big")
    by_payload = {}
    for raw_id in await bench.redis.execute_command("ZRANGE", KEYS.group("g"), 0, -1):
        raw = await bench.field(raw_id.decode(), "msg")
        assert raw is not None
        by_payload[TaskMessage.FromString(raw).payload] = raw_id.decode()
    await bench.redis.execute_command("HSET", KEYS.task(by_payload[b"bad"]), "msg", b"\xff\xff")
    await bench.redis.execute_command("HSET", KEYS.task(by_payload[b"big"]), "msg", bytes(2 << 20))
    await bench.redis.execute_command("DEL", KEYS.task(by_payload[b"ghost"]))
    await age(bench, "g", 60)
    await round_of(bench, ripe())
    assert [message.payload for message in await messages(bench)] == [b"good"]
    assert sorted(await bench.ids("archived")) == sorted([by_payload[b"bad"], by_payload[b"big"]])
    assert await bench.redis.execute_command("EXISTS", KEYS.group("g"), KEYS.aggregation_sets) == 0


async def test_a_stop_lets_a_callback_end(bench: Bench) -> None:
    asked = asyncio.Event()

    async def slow(group: str, tasks: Sequence[Task]) -> Task:
        asked.set()
        await asyncio.sleep(0.5)
        return join(group, tasks)

    await put(bench, "g", "a")
    await age(bench, "g", 60)
    server = await bench.serve(Recorder(), aggregation=ripe(slow), shutdown_timeout=timedelta(seconds=5))
    await asyncio.wait_for(asked.wait(), 5)
    await server.stop()
    assert [message.payload for message in await messages(bench)] == [b"a"]


async def test_a_stop_puts_back_what_a_callback_does_not_finish(bench: Bench) -> None:
    asked = asyncio.Event()

    async def endless(_group: str, _tasks: Sequence[Task]) -> Task:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    await put(bench, "g", "a")
    await age(bench, "g", 60)
    server = await bench.serve(Recorder(), aggregation=ripe(endless))
    await asyncio.wait_for(asked.wait(), 5)
    await server.stop()
    assert await bench.redis.execute_command("ZCARD", KEYS.group("g")) == 1
    assert await bench.redis.execute_command("EXISTS", KEYS.aggregation_sets) == 0


async def test_groups_nobody_aggregates_are_told_once(bench: Bench) -> None:
    await put(bench, "g", "a")
    with capture_logs() as logs:
        await bench.serve(Recorder(), intervals=QUICK)
        await wait_until(
            lambda: any(e["event"].startswith("队列中有分组任务等待") for e in logs), description="told"
        )
        await asyncio.sleep(1)
    told = [entry for entry in logs if entry["event"].startswith("队列中有分组任务等待")]
    assert [(entry["queue"], entry["groups"], entry["log_level"]) for entry in told] == [
        ("default", 1, "warning")
    ]


async def test_the_set_of_a_dead_server_is_put_back_by_another(bench: Bench) -> None:
    await put(bench, "g:with:colons", "a", "b")
    await age(bench, "g:with:colons", 60)
    asked: list[int] = []

    def die(_group: str, tasks: Sequence[Task]) -> Task:
        asked.append(len(tasks))
        raise ZeroDivisionError

    await round_of(bench, ripe(die))
    (set_key,) = await bench.redis.execute_command("ZRANGE", KEYS.aggregation_sets, 0, -1)
    await bench.redis.execute_command("ZADD", KEYS.aggregation_sets, 1, set_key)  # long ago
    await bench.redis.execute_command(
        "ZADD", KEYS.aggregation_sets, 1, "asynq:{other}:g:x:y"
    )  # no business of ours
    recorder = Recorder()
    with capture_logs() as logs:
        await bench.serve(recorder, aggregation=ripe())
        await wait_until(lambda: recorder.seen, timeout=15, description="the joined task")
    assert (recorder.seen[0].type, recorder.seen[0].payload) == ("joined:g:with:colons", b"a,b")
    assert [entry["count"] for entry in logs if entry["event"] == "中断的分组汇总已放回"] == [2]


async def test_many_groups_are_aggregated_at_once_but_not_all(bench: Bench) -> None:
    running, most = 0, 0

    async def slow(group: str, tasks: Sequence[Task]) -> Task:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return join(group, tasks)

    for number in range(12):
        await put(bench, f"g{number}", "a", "b")
        await age(bench, f"g{number}", 60)
    await round_of(bench, ripe(slow))
    assert await bench.size("pending") == 12
    assert most == 3


async def test_a_scheduled_task_with_a_group_is_aggregated_when_it_is_due(bench: Bench) -> None:
    seen: list[ProcessingTask] = []

    async def handler(task: ProcessingTask) -> None:
        seen.append(task)

    await bench.serve(handler, aggregation=ripe())
    await put(bench, "g", "a", process_in=timedelta(seconds=1))
    await wait_until(lambda: seen, timeout=15, description="the joined task")
    assert [task.type for task in seen] == ["joined:g"]


@pytest.mark.parametrize(
    "rules", [{"grace": timedelta(0)}, {"max_delay": timedelta(milliseconds=5)}, {"max_size": 0}]
)
def test_impossible_rules_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(AggregationError):
        Aggregation(aggregator=join, **rules)


async def test_spoiled_groups_keep_no_other_from_its_turn_and_are_told_once(bench: Bench) -> None:
    names = [f"g{number}" for number in range(12)]
    for name in names:
        await put(bench, name, name)
        await age(bench, name, 60)
    for name in names[::2]:
        await bench.redis.execute_command("SET", KEYS.group(name), "foreign")
    await bench.redis.execute_command("SET", queue_keys("low").groups, "foreign")
    aggregator = make(bench, ripe(), queues=("low", "default"))
    with capture_logs() as logs:
        for _ in range(2):
            await aggregator._round()
    payloads = [message.payload.decode() for message in await messages(bench)]
    assert sorted(payloads) == sorted(names[1::2])
    told = [log["group"] for log in logs if log["log_level"] == "error"]
    assert sorted(told) == sorted(["", *names[::2]])
