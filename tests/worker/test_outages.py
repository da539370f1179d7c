"""A worker that was ready outlives passing faults of its services, and goes on working afterwards."""

import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType


async def processed(redis: Redis) -> int:
    return sum(
        queue.processed_total for queue in await Inspector(redis).queues() if queue.queue == CRON_QUEUE
    )


async def does_work(redis: Redis, worker: WorkerProcess) -> None:
    """Have the worker do one task that needs both services."""
    before = await processed(redis)
    await Client(redis).enqueue(Task(TaskType.IMPORT_REDRIVE), EnqueueOptions(queue=CRON_QUEUE))

    async def done() -> bool:
        assert worker.returncode is None, worker.log_text
        return await processed(redis) > before

    await wait_until(done, timeout=20, description="the worker processes a task")


@pytest.mark.parametrize("role", ["leader", "consumer"])
async def test_both_services_go_away_and_come_back(
    redis_server: EmbeddedRedis,
    postgres_server: EmbeddedPostgres,
    redis_url: str,
    redis: Redis,
    postgres_dsn: str,
    role: str,
) -> None:
    env = {
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_WORKER_ROLE": role,
    }
    async with WorkerProcess(env) as worker:
        await worker.wait_started()
        await does_work(redis, worker)
        await redis_server.kill()
        await postgres_server.kill()
        await postgres_server.start()
        await redis_server.start()
        await does_work(redis, worker)
        assert await worker.stop() == 0, worker.log_text
    assert worker.find("优雅关闭完成")
