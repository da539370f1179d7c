"""Every role registers a handler for every task type of the platform."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from junhong_cmp.asynq.client import Client
from junhong_cmp.clock import SystemClock
from junhong_cmp.config import load
from junhong_cmp.polling.shared_clock import SharedClock
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


class HourOff(SystemClock):
    """A machine whose clock is an hour behind or ahead."""

    def __init__(self, hours: int) -> None:
        self._hours = hours

    def now(self) -> datetime:
        return super().now() + timedelta(hours=self._hours)


def parts_of(thing: object, seen: set[int]) -> Iterator[object]:
    """Yield our own objects reachable from one of them; what a shared clock is made of is its own affair."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping):
        inner = list(thing.values())
    elif isinstance(thing, tuple | list):
        inner = list(thing)
    elif not type(thing).__module__.startswith(("junhong_cmp", __name__)) or isinstance(thing, type):
        return
    else:
        yield thing
        if isinstance(thing, SharedClock):
            return
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        inner = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
        inner += [getattr(thing, name) for name in slots if hasattr(thing, name)]
    for part in inner:
        yield from parts_of(part, seen)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_whatever_decides_by_time_goes_by_the_time_of_redis(
    redis: Redis, redis_url: str, postgres_dsn: str, hours: int
) -> None:
    environ = {
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_GATEWAY_URL": "https://gateway.test",
        "JUNHONG_GATEWAY_KEY_ID": "demo",
        "JUNHONG_GATEWAY_SECRET": "canary-secret-of-the-tests",
    }
    bootstrap = BootstrapWorker(load(environ=environ), HourOff(hours))
    try:
        services = await bootstrap.open()
        assert abs(services.clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
        handler = TaskHandler(services)
        seen: set[int] = set()
        parts = [*parts_of(services, seen), *parts_of(handler, seen)]
        assert services.clock in parts
        assert [part for part in parts if isinstance(part, SystemClock)] == []
        await handler.close()
    finally:
        await bootstrap.close()
