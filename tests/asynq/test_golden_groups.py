"""Ours against what the real Asynq left in Redis while it made one task of a group."""

import base64
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from tests.asynq.golden_states import assert_same, dump, recorded, restore, step_named, task_of
from tests.asynq.wire import Clock

from junhong_cmp.asynq.aggregation import Aggregation
from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_groups import CommitOutcome, GatheredSet, Groups
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.message import prepare
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUEUE = "golden"
RULES = Aggregation(aggregator=lambda _, tasks: tasks[0], grace=timedelta(seconds=1))


def groups(redis: Redis, clock: Clock) -> Groups:
    return Groups(redis, 1024 * 1024, clock)


async def gathered(redis: Redis, name: str, clock: Clock) -> GatheredSet:
    """Enqueue the task of a step into its group and gather the group."""
    await Client(redis, clock=clock).enqueue(*task_of(step_named(name)["case"]))
    clock.now += 1
    planned = GatheredSet.plan(QUEUE, b"cards")
    assert await groups(redis, clock).gather(planned, RULES)
    return planned


def without_uuids(found: dict[str, Any]) -> dict[str, Any]:
    """Name each aggregation set alike, and leave out the server that Go had running."""
    kept = {key: one for key, one in found.items() if not key.startswith(("asynq:servers", "asynq:workers"))}
    kept.pop("asynq:{golden}:paused", None)
    prefix = "asynq:{golden}:g:cards:"
    renamed = {prefix if key.startswith(prefix) else key: one for key, one in kept.items()}
    sets = renamed["asynq:{golden}:aggregation_sets"]
    sets["scores"] = {prefix.encode(): score for score in sets["scores"].values()}
    return renamed


async def test_gathering_a_set(redis: Redis) -> None:
    step = step_named("aggregation set")
    await gathered(redis, "aggregation set", Clock(float(step["at"] - 1)))
    assert_same(without_uuids(await dump(redis)), without_uuids(recorded(step)))


async def test_committing_a_set(redis: Redis) -> None:
    step = step_named("aggregated")
    clock = Clock(float(step["at"] - 1))
    theirs = recorded(step)
    ((hash_key, original),) = ((key, one) for key, one in theirs.items() if one["kind"] == "hash")
    task_id = hash_key.rpartition(":")[2]
    planned = await gathered(redis, "aggregated", clock)
    options = EnqueueOptions(queue=QUEUE, task_id=task_id)
    joined = prepare(Task("joined:cards", b"aggregated"), options, clock())
    assert await groups(redis, clock).commit(planned, joined) is CommitOutcome.COMMITTED
    ours = await dump(redis)
    assert_same(ours, theirs)
    assert ours[hash_key]["fields"][b"msg"] == original["fields"][b"msg"]


async def test_putting_back_a_set_whose_aggregator_died(redis: Redis) -> None:
    step = step_named("reclaimed set")
    clock = Clock(float(step["at"]))
    await gathered(redis, "reclaimed set", clock)
    clock.now += 200
    assert await groups(redis, clock).reclaim(QUEUE) == 1
    ours, theirs = await dump(redis), recorded(step)
    # Go forgets to enter the group again, so nobody looks at it until it gets another task.
    assert ours.pop("asynq:{golden}:groups")["list"] == [b"cards"]
    assert_same(ours, theirs)


async def test_we_put_back_a_set_that_go_left_and_make_its_task(redis: Redis) -> None:
    step = step_named("aggregation set")
    theirs = recorded(step)
    await restore(redis, theirs)
    await redis.delete("asynq:{golden}:paused")
    clock = Clock(float(step["at"] + 200))
    ours = groups(redis, clock)
    assert await ours.reclaim(QUEUE) == 1
    planned = GatheredSet.plan(QUEUE, b"cards")
    assert await ours.gather(planned, RULES)
    (message,) = planned.messages
    assert message.SerializeToString(deterministic=True) == theirs["asynq:{golden}:t:id"]["fields"][b"msg"]
    options = EnqueueOptions(queue=QUEUE, task_id="joined")
    joined = prepare(Task("joined:cards", message.payload), options, clock())
    assert await ours.commit(planned, joined) is CommitOutcome.COMMITTED
    (task,) = (await Broker(redis, clock=clock).dequeue(QUEUE, 5, owner="w")).tasks
    assert (task.message.id, task.message.payload) == ("joined", b"aggregation set")


def test_the_group_of_a_message_is_kept() -> None:
    (key,) = (key for key in step_named("aggregation set")["keys"] if key["key"].endswith(":t:id"))
    assert TaskMessage.FromString(base64.b64decode(key["fields"]["msg"])).group_key == "cards"
