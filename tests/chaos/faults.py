"""What several tests do to a fleet, and wait for."""

import time
from datetime import timedelta
from typing import Final

import pytest
from tests.chaos.checker import Event
from tests.chaos.fleet import Fleet
from tests.faultproxy import FaultProxy
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.cards.model import Card

_POLLING: Final = "junhong_cmp.polling"
POINTS = ("after_start", "before_gw", "after_gw", "after_commit", "after_write_back")
"""Where a poll can be interrupted, in its order."""
SLOW_CARRIER = pytest.mark.parametrize("carrier_latency", [timedelta(seconds=1)], indirect=True, ids=["slow"])
"""Many calls are under way at any moment."""


def worker_of(fleet: Fleet, event: Event) -> WorkerProcess:
    return next(worker for worker in fleet.workers if worker.pid == event["pid"])


async def leads(fleet: Fleet, *, since: float = 0.0) -> tuple[WorkerProcess, Event]:
    election = await fleet.event("elected", since=since)
    return worker_of(fleet, election), election


async def wait_s(seconds: float) -> None:
    """Let a fault last; nothing else marks its end."""
    until = time.monotonic() + seconds
    await wait_until(
        lambda: time.monotonic() >= until, timeout=seconds + 5, description=f"{seconds} s passed"
    )


async def at_work(fleet: Fleet, cards: list[Card]) -> None:
    """Two leaders and a consumer that have polled every card once."""
    await fleet.enlist("leader")
    await fleet.enlist("leader")
    await fleet.enlist("consumer")
    await fleet.settle(cards)


async def flush(fleet: Fleet) -> None:
    fleet.note("flush")
    await fleet.redis.flushall()
    fleet.note("flush")


async def lose_replies(fleet: Fleet, cards: list[Card], script: str) -> None:
    """Have Redis do what it is told by a script three times without anybody hearing of it; judge."""
    async with FaultProxy(fleet.redis_url) as proxy:
        fleet.redis_url = proxy.url
        await at_work(fleet, cards)
        pattern = (
            b"polling:carddata" if script == "enqueue" else LuaScript.load(_POLLING, script).sha1.encode()
        )
        proxy.cut_after(pattern, times=3)
        await wait_until(lambda: proxy.cuts >= 3, timeout=40, description="replies were lost")
        await fleet.judge(cards)
