"""Loops of the leader run while the process leads, and only then, whatever order things happen in."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.errors import CriticalLoopError
from junhong_cmp.leadership import keys
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.elector import LeaderElector
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.leadership.times import LeaseTimes
from junhong_cmp.lifecycle import ModuleGroup
from junhong_cmp.worker.leadership import Leadership
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.roles import ModuleName
from junhong_cmp.worker.singletons import LOOP_TASKS, SingletonModule

SINGLETONS = list(LOOP_TASKS)
QUICK = LeaseTimes(
    ttl=timedelta(seconds=1), renew=timedelta(milliseconds=300), retry=timedelta(milliseconds=100)
)


class RecordedLoop:
    """A loop that records its start and its stop, and whether the lease was held then."""

    def __init__(self, process: "Process", name: ModuleName) -> None:
        self._process = process
        self._name = name

    async def start(self) -> None:
        if self._process.fails_to_start == self._name:
            raise ZeroDivisionError("by zero")
        self._process.events.append(f"start {self._name}")

    async def stop(self) -> None:
        held = await self._process.holds_lease()
        self._process.events.append(f"stop {self._name}" + ("" if held else " without lease"))


class Process:
    """What one worker process has of leadership."""

    def __init__(self, redis: Any, url: str, name: str) -> None:
        self._redis = redis
        self.candidate = Candidate.of_this_process(name)
        self.elector = LeaderElector(self.candidate, QUICK, lambda: open_redis(url, pool_size=2))
        self.leadership = Leadership(self.elector, self._build, on_failure=self._fail)
        modules = self.leadership.modules()
        self.group = ModuleGroup([modules[name] for name in SINGLETONS])
        self.events: list[str] = []
        self.terms: list[Term] = []
        self.failures: list[CriticalLoopError] = []
        self.fails_to_start = ""

    async def holds_lease(self) -> bool:
        return (await LeaseStore(self._redis).read()).lease.holder == self.candidate.holder

    def runs_everything(self) -> bool:
        return self.events[-3:] == [f"start {name}" for name in SINGLETONS]

    def _build(self, term: Term) -> list[SingletonModule]:
        self.terms.append(term)
        return [
            SingletonModule(name, RecordedLoop(self, name), LoopWatch(LOOP_TASKS[name], self._fail))
            for name in SINGLETONS
        ]

    def _fail(self, error: CriticalLoopError) -> None:
        self.failures.append(error)


@pytest.fixture
async def processes(redis: Redis, redis_url: str) -> AsyncIterator[tuple[Process, Process]]:
    pair = Process(redis, redis_url, "甲"), Process(redis, redis_url, "乙")
    yield pair
    for process in pair:
        await process.group.stop()


async def lead(process: Process) -> Term:
    await process.group.start()
    await wait_until(process.runs_everything, description="the loops run")
    return process.terms[-1]


STOPPED_IN_ORDER = [f"stop {name}" for name in reversed(SINGLETONS)]


async def test_loops_stop_last_first_and_then_the_lease_is_released(
    processes: tuple[Process, Process],
) -> None:
    process, _ = processes
    await lead(process)
    await process.group.stop()
    assert process.events[3:] == STOPPED_IN_ORDER
    assert not await process.holds_lease()
    assert process.terms[0].end_reason is TermEnd.RESIGNED


async def test_a_standby_starts_nothing_until_the_leader_has_gone(
    processes: tuple[Process, Process],
) -> None:
    first, second = processes
    await lead(first)
    await second.group.start()
    assert await second.elector.first_answer() == "热备"
    assert second.group.started == tuple(SINGLETONS)
    assert second.events == []
    await first.group.stop()
    await wait_until(second.runs_everything, description="the standby took over")
    assert second.terms[0].epoch > first.terms[0].epoch


async def test_a_lost_term_stops_its_loops_and_the_process_contends_again(
    processes: tuple[Process, Process], redis: Redis
) -> None:
    process, _ = processes
    old = await lead(process)
    await redis.delete(keys.lease())
    await wait_until(lambda: len(process.terms) == 2, description="another term")
    await wait_until(process.runs_everything, description="the loops run again")
    assert old.end_reason is TermEnd.LOST
    assert process.events[3:6] == [f"{event} without lease" for event in STOPPED_IN_ORDER]
    assert process.terms[1].epoch > old.epoch


async def test_a_disputed_term_keeps_the_lease_until_its_loops_have_stopped(
    processes: tuple[Process, Process],
) -> None:
    process, _ = processes
    old = await lead(process)
    old.dispute(old.epoch + 5)
    await wait_until(lambda: len(process.terms) == 2, description="another term")
    assert process.events[3:6] == STOPPED_IN_ORDER
    assert process.terms[1].epoch > old.epoch + 5


async def test_a_stop_in_the_middle_of_a_lost_term(processes: tuple[Process, Process]) -> None:
    process, _ = processes
    term = await lead(process)
    term.dispute(None)
    await process.group.stop()
    assert sorted(process.events[3:]) == sorted(STOPPED_IN_ORDER)
    assert not await process.holds_lease()


@pytest.mark.parametrize("step_ms", [0, 1, 2, 5, 10, 20])
async def test_a_stop_at_any_moment_leaves_nothing_running(
    processes: tuple[Process, Process], step_ms: int
) -> None:
    process, _ = processes
    await process.group.start()
    await asyncio.sleep(step_ms / 1000)  # the moment is what is being tried
    await process.group.stop()
    starts = [event for event in process.events if event.startswith("start")]
    stops = [event for event in process.events if event.startswith("stop")]
    assert len(starts) == len(stops)
    assert not await process.holds_lease()
    assert process.failures == []


async def test_a_loop_that_does_not_start_is_a_critical_failure(
    processes: tuple[Process, Process],
) -> None:
    process, _ = processes
    process.fails_to_start = ModuleName.POLLING_SCHEDULER
    await process.group.start()
    await wait_until(lambda: process.failures, description="the failure is told")
    await process.group.stop()
    assert process.events == ["start polling_initializer", "stop polling_initializer"]
    assert not await process.holds_lease()


async def test_a_keeper_that_dies_is_a_critical_failure(
    processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, _ = processes

    async def die(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    term = await lead(process)
    monkeypatch.setattr(LeaseStore, "renew", die)
    await wait_until(lambda: process.failures, description="the failure is told")
    assert term.end_reason is TermEnd.LAPSED
    assert process.events[3:] == STOPPED_IN_ORDER
