"""Every role registers a handler for every task type of the platform."""

from redis.asyncio import Redis

from junhong_cmp.asynq.client import Client
from junhong_cmp.clock import SystemClock
from junhong_cmp.config import load
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.bootstrap import BootstrapWorker
from junhong_cmp.worker.task_handler import TaskHandler


async def test_all_task_types_are_registered(redis: Redis, redis_url: str, postgres_dsn: str) -> None:
    environ = {"JUNHONG_REDIS_URL": redis_url, "JUNHONG_POSTGRES_DSN": postgres_dsn}
    bootstrap = BootstrapWorker(load(environ=environ), SystemClock())
    try:
        services = await bootstrap.open()
        handler = TaskHandler(services)
        assert set(handler.task_types) == set(TaskType)
        assert isinstance(services.client, Client)
        assert len(services.missing) == 2
        await handler.close()
    finally:
        await bootstrap.close()


async def test_a_bootstrap_that_was_never_opened_closes() -> None:
    environ = {
        "JUNHONG_REDIS_URL": "redis://127.0.0.1:1",
        "JUNHONG_POSTGRES_DSN": "postgresql://127.0.0.1:1/x",
    }
    await BootstrapWorker(load(environ=environ), SystemClock()).close()
