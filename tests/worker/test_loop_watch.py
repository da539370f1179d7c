"""A loop that ends by itself is reported; one that is stopped is not."""

import asyncio

import pytest
from tests.waiting import wait_until

from junhong_cmp.errors import CriticalLoopError, ExitCode
from junhong_cmp.worker.loop_watch import LoopWatch


async def fail() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("by zero")


async def end() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize(("loop", "reason"), [(fail, "ZeroDivisionError"), (end, "意外结束")])
async def test_death_is_reported(loop: type, reason: str) -> None:
    failures: list[CriticalLoopError] = []
    task = asyncio.create_task(loop(), name="asynq-scheduler")
    LoopWatch("asynq-scheduler", failures.append).begin()
    await wait_until(lambda: failures, description="the death was reported")
    assert reason in str(failures[0])
    assert failures[0].exit_code is ExitCode.CRITICAL_LOOP_DIED
    await asyncio.wait({task})


async def test_a_cancelled_loop_is_dead_too() -> None:
    failures: list[CriticalLoopError] = []
    task = asyncio.create_task(asyncio.Event().wait(), name="polling_scheduler")
    LoopWatch("polling_scheduler", failures.append).begin()
    await asyncio.sleep(0)
    task.cancel()
    await wait_until(lambda: failures, description="the death was reported")


async def test_a_planned_stop_and_other_tasks_are_not_reported() -> None:
    failures: list[CriticalLoopError] = []
    watched = asyncio.create_task(asyncio.Event().wait(), name="polling_scheduler")
    other = asyncio.create_task(end(), name="other")
    watch = LoopWatch("polling_scheduler", failures.append)
    watch.begin()
    await other
    watch.end()
    watched.cancel()
    await asyncio.wait({watched})
    await asyncio.sleep(0)
    assert failures == []
