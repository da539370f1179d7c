"""Several worker processes that all want to lead: one does, and the work goes on whatever becomes of it."""

import signal
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import orjson
import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.leadership import keys
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.leadership.times import LeaseTimes
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType

QUICK = {"JUNHONG_LEASE_TTL": "2s", "JUNHONG_LEASE_RENEW": "600ms", "JUNHONG_LEASE_RETRY": "200ms"}
STEADY = {"JUNHONG_LEASE_TTL": "4s", "JUNHONG_LEASE_RENEW": "1s", "JUNHONG_LEASE_RETRY": "300ms"}
TTL_S = 2.0
SLACK_S = 2.0
ELECTED = "当选主节点"
STANDS_BY = "已有主节点，本实例热备"
LOST = "失去主节点租约，停止调度"
RESIGNED = "卸任主节点"

Env = dict[str, str]


@pytest.fixture
def env(redis_url: str, postgres_dsn: str) -> Env:
    return {"JUNHONG_REDIS_URL": redis_url, "JUNHONG_POSTGRES_DSN": postgres_dsn, **QUICK}


def named(env: Mapping[str, str], name: str, role: str = "leader") -> WorkerProcess:
    return WorkerProcess({**env, "JUNHONG_WORKER_INSTANCE_NAME": name, "JUNHONG_WORKER_ROLE": role})


async def holder_pid(redis: Redis) -> int:
    lease = (await LeaseStore(redis).read()).lease
    return lease.pid if lease.alive else 0


async def test_the_second_is_a_hot_standby_that_consumes(env: Env, redis: Redis) -> None:
    async with named(env, "甲") as first:
        record = await first.wait_started()
        assert record["scheduling"] == "主"
        assert "调度状态=主，承担单例主动调度职责" in record["event"]
        async with named(env, "乙", "all") as second:
            record = await second.wait_started()
            assert record["scheduling"] == "热备"
            assert "调度状态=热备" in record["event"]
            assert len(record["enabled_modules"]) == 4
            [warning] = second.find(STANDS_BY)
            assert (warning["level"], warning["holder_name"]) == ("warning", "甲")
            assert warning["holder_pid"] == first.pid
            assert warning["holder_host"]
            assert datetime.fromisoformat(warning["holder_since"]) <= datetime.now(UTC)

            first.signal(signal.SIGTSTP)  # it takes no more tasks: what is done now, the standby does
            await first.wait_for("收到 SIGTSTP，停止取新任务")
            done = await processed(redis)
            await Client(redis).enqueue(Task(TaskType.IMPORT_REDRIVE), EnqueueOptions(queue=CRON_QUEUE))

            async def consumed() -> bool:
                return await processed(redis) > done

            await wait_until(consumed, description="the standby consumes")
            assert not second.find(ELECTED)
            assert not second.find("全量初始化开始")
            assert await second.stop() == 0, second.log_text
        assert await first.stop() == 0, first.log_text
    assert len(second.find(STANDS_BY)) == 1


async def processed(redis: Redis) -> int:
    return sum(queue.processed_total for queue in await Inspector(redis).queues())


async def test_a_planned_hand_over_takes_less_than_three_seconds(env: Env, redis: Redis) -> None:
    env |= {"JUNHONG_LEASE_TTL": "15s", "JUNHONG_LEASE_RENEW": "5s", "JUNHONG_LEASE_RETRY": "2s"}
    async with named(env, "甲") as leader:
        await leader.wait_started()
        async with named(env, "乙") as standby:
            await standby.wait_started()
            began = time.monotonic()
            leader.signal(signal.SIGTERM)
            elected = await standby.wait_for(ELECTED)
            assert time.monotonic() - began < 3.0 + 0.5
            assert elected["gap_s"] <= 3.0
            assert await leader.wait_exit() == 0, leader.log_text
            assert elected["term"] > leader.find(ELECTED)[0]["term"]
            assert await standby.stop() == 0


async def test_sigterm_releases_the_lease_after_the_loops_and_before_the_drain(env: Env) -> None:
    async with named(env, "甲") as leader:
        await leader.wait_started()
        assert await leader.stop() == 0, leader.log_text
    order = [
        ("模块已停止", "asynq_scheduler"),
        ("模块已停止", "polling_scheduler"),
        (RESIGNED, None),
        ("模块已停止", "polling_initializer"),
        ("任务服务器开始停止", None),
        ("模块已停止", "queue_server"),
    ]
    events = [(record["event"], record.get("module")) for record in leader.records]
    places = [events.index(step) for step in order]
    assert places == sorted(places)
    assert leader.find(RESIGNED)[0]["reason"] == "计划内卸任"


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
async def test_three_start_together_and_a_dead_leader_is_followed(
    env: Env, redis: Redis, fault: signal.Signals
) -> None:
    async with named(env, "甲") as one, named(env, "乙") as two, named(env, "丙") as three:
        workers = [one, two, three]
        for worker in workers:
            await worker.wait_started()
        for _ in range(2):
            leader_pid = await holder_pid(redis)
            [leader] = [worker for worker in workers if worker.pid == leader_pid]
            await leader.wait_for(ELECTED)  # it holds the lease a moment before it says so
            began = time.monotonic()
            leader.signal(fault)
            workers.remove(leader)

            async def followed(pid: int = leader_pid) -> bool:
                return await holder_pid(redis) not in {0, pid}

            await wait_until(followed, timeout=TTL_S + 5, description="somebody else leads")
            assert time.monotonic() - began < TTL_S + SLACK_S
        await workers[0].wait_for(ELECTED)
        terms = [record["term"] for worker in (one, two, three) for record in worker.find(ELECTED)]
        assert len(terms) == len(set(terms)) == 3


async def test_a_frozen_leader_that_goes_on_claims_nothing_and_leads_again_later(
    env: Env, redis: Redis
) -> None:
    async with named(env, "甲") as frozen:
        await frozen.wait_started()
        async with named(env, "乙") as other:
            await other.wait_started()
            frozen.signal(signal.SIGSTOP)
            second = await other.wait_for(ELECTED, timeout=TTL_S + 5)
            began = time.monotonic()
            await wait_until(
                lambda: time.monotonic() - began > 2 * TTL_S, timeout=10, description="three leases long"
            )
            frozen.signal(signal.SIGCONT)
            lost = await frozen.wait_for(LOST)
            first = frozen.find(ELECTED)[0]
            assert lost["term"] == first["term"] < second["term"]
            await frozen.wait_for(RESIGNED)
            await frozen.wait_for(STANDS_BY)
            assert await other.stop() == 0, other.log_text
        third = await frozen.wait_for(ELECTED, count=2)
        assert third["term"] > second["term"]
        assert await frozen.stop() == 0, frozen.log_text


async def test_flushed_it_leads_and_initialises_anew(env: Env, redis: Redis) -> None:
    async with named(env, "甲") as leader:
        await leader.wait_for("全量初始化完成")
        await redis.flushall()
        again = await leader.wait_for(ELECTED, count=2)
        assert again["term"] > leader.find(ELECTED)[0]["term"]
        await leader.wait_for("全量初始化完成", term=again["term"])
        assert await leader.stop() == 0, leader.log_text


async def test_sigterm_between_election_and_the_first_loop_releases_the_lease(env: Env, redis: Redis) -> None:
    prelude = """
import os, signal
from junhong_cmp.worker.leadership import Leadership
start_loops = Leadership._start_loops
async def interrupted(self, term):
    os.kill(os.getpid(), signal.SIGTERM)
    await start_loops(self, term)
Leadership._start_loops = interrupted
"""
    async with WorkerProcess(env, prelude=prelude) as worker:
        assert await worker.wait_exit() == 0, worker.log_text
    assert worker.find(ELECTED)
    assert worker.find(RESIGNED)
    assert await holder_pid(redis) == 0


async def test_a_blocked_event_loop_keeps_the_lease(env: Env, redis: Redis) -> None:
    prelude = """
import time
from junhong_cmp.imports.redrive import ImportRedriveHandler
async def process_task(self, task):
    time.sleep(10)
ImportRedriveHandler.process_task = process_task
"""
    env |= STEADY
    async with WorkerProcess({**env, "JUNHONG_WORKER_ROLE": "leader"}, prelude=prelude) as leader:
        await leader.wait_started()
        async with named(env, "乙") as standby:
            await standby.wait_started()
            standby.signal(signal.SIGTSTP)  # the task is the leader's
            await standby.wait_for("收到 SIGTSTP，停止取新任务")
            await Client(redis).enqueue(Task(TaskType.IMPORT_REDRIVE), EnqueueOptions(queue=CRON_QUEUE))
            await leader.wait_for("事件循环阻塞", timeout=30)

            async def unblocked() -> bool:
                return await processed(redis) > 0

            await wait_until(unblocked, timeout=20, description="ten seconds later")
            assert not standby.find(ELECTED)
            assert not leader.find(LOST)
            assert await holder_pid(redis) == leader.pid
            assert await standby.stop() == 0


async def test_a_consumer_never_takes_the_lease(env: Env, redis: Redis) -> None:
    async with named(env, "甲", "consumer") as consumer:
        record = await consumer.wait_started()
        assert record["scheduling"] == "无"
        assert "调度状态" not in record["event"]
        assert await consumer.stop() == 0
    assert not await redis.exists(keys.lease(), keys.standbys())


async def test_on_conflict_it_may_end_with_78(env: Env) -> None:
    async with named(env, "甲") as leader:
        await leader.wait_started()
        async with named({**env, "JUNHONG_LEASE_ON_CONFLICT": "exit"}, "乙") as second:
            assert await second.wait_exit() == 78, second.log_text
        [problem] = [record["problem"] for record in second.find("配置错误")]
        assert f"已有主节点：实例名称=甲，主机={_host(leader)}，进程={leader.pid}" in problem
        assert second.find("已有主节点，待其续约即退出")
        assert not second.find(STANDS_BY), "it does not stand by"
        assert not second.find(ELECTED)


def _host(worker: WorkerProcess) -> str:
    return str(worker.find(ELECTED)[0]["holder_host"])


async def test_a_lease_left_behind_is_no_conflict(env: Env, redis: Redis) -> None:
    await LeaseStore(redis).acquire(Candidate.of_this_process("死"), LeaseTimes())
    await redis.hset(keys.lease(), "ttl", "1000")  # as if it had been one of a second
    async with named({**env, "JUNHONG_LEASE_ON_CONFLICT": "exit"}, "乙") as second:
        await second.wait_started()
        assert second.find(ELECTED)
        assert await second.stop() == 0


async def test_without_a_lease_it_is_as_before_and_refused_beside_one(env: Env, redis: Redis) -> None:
    off = {**env, "JUNHONG_LEASE_MODE": "off"}
    async with named(env, "甲") as leader:
        await leader.wait_started()
        async with named(off, "乙") as refused:
            assert await refused.wait_exit() == 78, refused.log_text
        assert "已有主节点" in refused.find("配置错误")[0]["problem"]
        async with named(off, "丙", "consumer") as consumer:
            await consumer.wait_started()
            assert await consumer.stop() == 0
        assert await leader.stop() == 0
    async with named(off, "乙") as alone:
        assert (await alone.wait_started())["scheduling"] == "主"
        await alone.wait_for("全量初始化完成")
        assert not alone.find(ELECTED)
        assert await holder_pid(redis) == 0
        assert await alone.stop() == 0


async def test_status_shows_who_leads_and_who_stands_by(env: Env) -> None:
    async with named(env, "甲") as leader:
        await leader.wait_started()
        async with named(env, "乙") as standby:
            await standby.wait_started()
            async with WorkerProcess(env, arguments=("status", "--json")) as command:
                assert await command.wait_exit() == 0, command.log_text
            async with WorkerProcess({**env, "COLUMNS": "240"}, arguments=("status",)) as tables:
                assert await tables.wait_exit() == 0, tables.log_text
            assert await standby.stop() == 0
        assert await leader.stop() == 0
    leadership = orjson.loads(command.output)["leadership"]
    assert leadership["leader"]["name"] == "甲"
    assert leadership["leader"]["pid"] == leader.pid
    assert leadership["leader"]["term"] == leader.find(ELECTED)[0]["term"]
    assert datetime.fromisoformat(leadership["leader"]["since"]) <= datetime.now(UTC)
    assert [other["name"] for other in leadership["standbys"]] == ["乙"]
    assert leadership["standbys"][0]["pid"] == standby.pid
    for text in ("主节点", "甲", "热备", "乙"):
        assert text in tables.output
