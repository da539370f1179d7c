"""Requirement: 按角色启停 Worker 模块."""

from tests.scenarios.platform import EVERY_MODULE, INITIALISED, SINGLETONS, Platform
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.tasks import TaskType


def started(worker: WorkerProcess) -> list[str]:
    return [record["module"] for record in worker.find("模块已启动")]


async def everything_runs(platform: Platform, role: str) -> WorkerProcess:
    """Start a worker in a scheduling role and see each of its modules at work."""
    await platform.poll_usage_every(2)
    cards = await platform.issue_cards(20)
    worker = await platform.join(role, name="only")
    assert started(worker) == EVERY_MODULE
    await worker.wait_for(INITIALISED)
    assert await platform.members_of_shards() == {str(card.id): 1 for card in cards}
    await platform.all_polled(cards)
    await platform.wait_for_firing("import_redrive")
    return worker


async def test_all_runs_every_module(platform: Platform) -> None:
    """all 角色启动全部模块"""
    worker = await everything_runs(platform, "all")
    assert await worker.stop() == 0


async def test_leader_runs_every_module_and_says_its_duty(platform: Platform) -> None:
    """leader 角色启动全部模块"""
    worker = await everything_runs(platform, "leader")
    assert "承担单例主动调度职责" in worker.find("Worker 启动")[0]["event"]
    assert await worker.stop() == 0


async def test_consumer_runs_the_queue_server_only(platform: Platform) -> None:
    """consumer 角色只启动任务消费模块

    Every task type finds its handler, and nothing is initialised, scheduled or fired while the consumer runs.
    """
    await platform.poll_usage_every(1)
    await platform.issue_cards(20)
    worker = await platform.join("consumer", name="only")
    assert started(worker) == ["queue_server"]

    client = Client(platform.redis)
    for number, task_type in enumerate(TaskType):
        await client.enqueue(Task(task_type, b"{}"), EnqueueOptions(task_id=f"probe-{number}", max_retry=0))
    await wait_until(
        lambda: _queue_is_idle(platform, "default"), timeout=20, description="every probe was handled"
    )
    assert not worker.find("任务类型没有处理器")

    assert await platform.members_of_shards() == {}
    assert await platform.cron_firings("import_redrive") == []
    assert await worker.stop() == 0
    stopped = {record["module"] for record in worker.find("模块已停止")}
    assert stopped == {"queue_server"}
    assert not stopped & set(SINGLETONS)


async def _queue_is_idle(platform: Platform, queue: str) -> bool:
    return not (
        await platform.redis.llen(f"asynq:{{{queue}}}:pending")
        or await platform.redis.llen(f"asynq:{{{queue}}}:active")
        or await platform.redis.zcard(f"asynq:{{{queue}}}:retry")
    )
