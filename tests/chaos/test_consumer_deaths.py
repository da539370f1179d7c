"""Consumers are killed and frozen in the middle of a poll, and started before anything they need."""

import signal
import time
from functools import partial

import pytest
from tests.chaos.faults import POINTS
from tests.chaos.fleet import CARDS, INTERVAL_S, TUNING, Fleet, kill
from tests.faultproxy import FaultProxy
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.cards.model import Card
from junhong_cmp.db.migrate import migrate, migrate_down
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.tasks import CRON_QUEUE, POLLING_QUEUE, TaskType

pytestmark = pytest.mark.chaos

ORDERS = (
    ("consumer", "redis", "leader", "schema"),
    ("leader", "schema", "consumer", "redis"),
    ("consumer", "schema", "redis", "leader"),
)
QUICK_LEASES = {"heartbeat": 1.0, "lease": 4.0, "recovery_margin": 2.0, "recover": 1.0}
POISON_AFTER = 3


async def test_p2_consumers_killed_at_every_point_of_a_poll(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    doomed = [
        await fleet.enlist("consumer", failpoint=f"{point}:kill:{nth}", started=False)
        for nth, point in enumerate(POINTS, start=3)
    ]
    for consumer in doomed:
        assert await consumer.wait_exit(timeout=40) == -signal.SIGKILL
    await fleet.judge(cards)
    assert {event["place"] for event in fleet.events("failpoint")} == set(POINTS)


@pytest.mark.parametrize("point", ["after_start", "after_gw"])
async def test_p5_consumer_frozen_in_the_middle_of_a_poll(
    fleet: Fleet, cards: list[Card], point: str
) -> None:
    await fleet.enlist("leader")
    frozen = await fleet.enlist("consumer", failpoint=f"{point}:stop:10")
    held = await fleet.event("failpoint", pid=frozen.pid)
    mine = [event for event in fleet.events(pid=frozen.pid) if event["seq"] < held["seq"]][-1]
    claim = mine.get("new_claim", mine["claim"])
    until = time.monotonic() + TUNING["turn_timeout"] + TUNING["visibility"] + 2
    await wait_until(
        lambda: (
            time.monotonic() > until
            and [e for e in fleet.events("commit", card=mine["card"]) if e["mono"] > held["mono"]]
        ),
        timeout=40,
        description="the card was polled by somebody else",
    )
    frozen.signal(signal.SIGCONT)
    await fleet.judge(cards)
    assert not fleet.events("write_back", pid=frozen.pid, claim=claim, outcome="ok")


async def test_p9_sigterm_at_any_moment_of_a_start_without_redis(fleet: Fleet) -> None:
    async with FaultProxy(fleet.redis_url) as proxy:
        proxy.stall()
        fleet.redis_url = proxy.url
        for step in range(8):
            worker = await fleet.launch(fleet.role_environment("leader"))
            until = time.monotonic() + 0.1 + step * 0.4
            await wait_until(lambda until=until: time.monotonic() >= until, timeout=5, description="a moment")
            worker.signal(signal.SIGTERM)
            code = await worker.wait_exit(timeout=2.5)
            assert code == 0 or (step == 0 and code == -signal.SIGTERM)


async def test_p11_consumer_and_leader_started_before_redis(
    fleet: Fleet, cards: list[Card], redis_server: EmbeddedRedis
) -> None:
    await redis_server.kill()
    consumer = await fleet.enlist("consumer", started=False)
    await consumer.wait_for("", timeout=10)
    leader = await fleet.enlist("leader", started=False)
    await leader.wait_for("", timeout=10)
    await redis_server.start()
    await consumer.wait_started()
    await leader.wait_started()
    await fleet.judge(cards)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
async def test_p11_whatever_comes_first_waits_for_the_rest(
    fleet: Fleet, redis_server: EmbeddedRedis, order: tuple[str, ...]
) -> None:
    await redis_server.kill()
    await migrate_down(fleet.postgres_dsn, None)
    cards: list[Card] = []
    for step in order:
        if step == "redis":
            await redis_server.start()
        elif step == "schema":
            await migrate(fleet.postgres_dsn)
            await fleet.open_account()
            await fleet.poll_usage_every(INTERVAL_S)
            cards = await fleet.issue_cards(CARDS)
        else:
            worker = await fleet.enlist(step, started=False)
            if step != order[-1]:
                await worker.wait_for("等待依赖就绪")
    for worker in fleet.workers:
        await worker.wait_started()
    await fleet.judge(cards)


async def test_p13_a_task_of_a_newer_release_waits_for_one(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    consumer = await fleet.enlist("consumer")
    options = EnqueueOptions(queue=POLLING_QUEUE, task_id="of-tomorrow", max_retry=0)
    await Client(fleet.redis).enqueue(Task("polling:of_tomorrow", b"{}"), options)
    told = fleet.workers
    await wait_until(
        lambda: any(worker.find("未知任务类型，延后放回队列") for worker in told),
        timeout=20,
        description="the unknown type is told of",
    )
    await fleet.judge(cards)
    state = await fleet.redis.hget("asynq:{polling}:t:of-tomorrow", "state")
    assert state in {b"retry", b"pending"}
    assert consumer.returncode == 0


async def test_p16_memory_runs_out_in_the_middle_of_a_poll(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    starved = await fleet.enlist("consumer", failpoint="before_gw:starve:10")
    await fleet.event("failpoint", pid=starved.pid)
    doomed = await fleet.enlist("consumer", failpoint="after_gw:exhaust:10")
    assert await doomed.wait_exit(timeout=30) == -signal.SIGKILL
    await fleet.judge(cards)


async def test_p16_a_task_that_takes_down_its_workers_is_set_aside(fleet: Fleet, cards: list[Card]) -> None:
    fleet.intervals = QUICK_LEASES
    options = EnqueueOptions(queue=CRON_QUEUE, task_id="poison")
    await Client(fleet.redis).enqueue(Task(TaskType.DATA_CLEANUP), options)
    inspector = Inspector(fleet.redis)
    for _ in range(POISON_AFTER):
        doomed = await fleet.enlist("all", failpoint="cleanup:exhaust", started=False)
        await wait_until(partial(offered, inspector, doomed), timeout=30, description="the poison killed")
    survivor = await fleet.enlist("all", failpoint="cleanup:exhaust")
    told = await survivor.wait_for("毒丸任务已归档", timeout=30)
    assert told["task_id"] == "poison"
    assert (await inspector.task(CRON_QUEUE, "poison")).state is TaskState.ARCHIVED
    await fleet.judge(cards)


async def offered(inspector: Inspector, doomed: WorkerProcess) -> bool:
    """Have a recovered task run at once, not after its back-off; whether it has killed its worker."""
    await inspector.run_all(CRON_QUEUE, TaskState.RETRY)
    return doomed.returncode == -signal.SIGKILL


async def test_p16_consumers_killed_one_after_another(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    for _ in range(4):
        consumer = await fleet.enlist("consumer")
        await fleet.event("commit", pid=consumer.pid)
        await kill(consumer)
    await fleet.judge(cards)
