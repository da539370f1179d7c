"""Whoever measures a server is told of every task, and cannot disturb it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import QUICK, Bench, Gate, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import PutBack, RevokeTask, SkipRetry
from junhong_cmp.asynq.in_flight import InFlightTable
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.observer import TaskOutcome
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.recoverer import Recoverer
from junhong_cmp.asynq.server_config import PoisonPolicy, ServerConfig

HOUR = timedelta(hours=1)


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


class Meter:
    """Counts what a server tells."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, TaskOutcome]] = []
        self.durations: list[float] = []
        self.abandoned: list[str] = []
        self.recovered: Counter[tuple[str, str, bool]] = Counter()

    def task_ended(self, task: ProcessingTask, outcome: TaskOutcome, duration_s: float) -> None:
        self.ended.append((task.type, task.queue, outcome))
        self.durations.append(duration_s)

    def handler_abandoned(self, task: ProcessingTask) -> None:
        self.abandoned.append(task.type)

    def task_recovered(self, queue: str, task_type: str, *, poison: bool) -> None:
        self.recovered[queue, task_type, poison] += 1


class Faulty:
    """Raises whatever it is told."""

    def task_ended(self, task: ProcessingTask, outcome: TaskOutcome, duration_s: float) -> None:
        raise ZeroDivisionError

    def handler_abandoned(self, task: ProcessingTask) -> None:
        raise ZeroDivisionError

    def task_recovered(self, queue: str, task_type: str, *, poison: bool) -> None:
        raise ZeroDivisionError


ERRORS = {
    "ok": None,
    "revoke": RevokeTask(),
    "error": ValueError("x"),
    "skip": SkipRetry("x"),
    "later": PutBack(HOUR, "x"),
}


async def test_each_task_is_told_with_its_outcome(bench: Bench) -> None:
    def decide(task: ProcessingTask) -> None:
        if (error := ERRORS[task.type]) is not None:
            raise error

    meter = Meter()
    await bench.serve(Recorder(decide), observer=meter, retry_delay=lambda *_: HOUR)
    await bench.enqueue(*ERRORS)
    await wait_until(lambda: len(meter.ended) == len(ERRORS), description="all told")
    assert {kind: outcome for kind, _, outcome in meter.ended} == {
        "ok": TaskOutcome.SUCCEEDED,
        "revoke": TaskOutcome.DROPPED,
        "error": TaskOutcome.RETRIED,
        "skip": TaskOutcome.ARCHIVED,
        "later": TaskOutcome.PUT_BACK,
    }
    assert {queue for _, queue, _ in meter.ended} == {"default"}
    assert all(0 <= duration < 5 for duration in meter.durations)


async def test_a_stop_and_a_stubborn_handler_are_told(bench: Bench) -> None:
    release = asyncio.Event()
    gate = Gate()

    async def handler(task: ProcessingTask) -> None:
        if task.type == "gate":
            await gate.process_task(task)
        while task.type == "stubborn" and not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    meter = Meter()
    server = await bench.serve(handler, observer=meter)
    await bench.enqueue("gate", "stubborn")
    await wait_until(lambda: server.in_flight == 2, description="both run")
    assert server.abandoned == 0
    await server.stop()
    assert meter.ended == [("gate", "default", TaskOutcome.REQUEUED)]
    assert (meter.abandoned, server.abandoned) == (["stubborn"], 1)
    release.set()
    await wait_until(lambda: server.abandoned == 0, description="its slot is free again")


@pytest.mark.parametrize("poison", [False, True])
async def test_recovered_tasks_are_told(bench: Bench, poison: bool) -> None:  # noqa: FBT001 - pytest fills it
    meter = Meter()
    config = ServerConfig(intervals=QUICK, observer=meter, poison=PoisonPolicy(recoveries=1 if poison else 3))
    (task_id,) = await bench.enqueue("a")
    await bench.broker.dequeue("default", 1, owner="dead")
    await bench.redis.execute_command("ZADD", queue_keys("default").lease, 1, task_id)
    await Recoverer(bench.broker, InFlightTable(), config).recover("default")
    assert meter.recovered == {("default", "a", poison): 1}


async def test_a_faulty_observer_changes_nothing_and_is_told_once(bench: Bench) -> None:
    recorder = Recorder()
    with capture_logs() as logs:
        await bench.serve(recorder, observer=Faulty())
        await bench.enqueue_many(50)
        await wait_until(lambda: len(recorder.seen) == 50, description="all handled")
        await bench.wait_size("active", 0)
    assert await bench.counter("processed") == 50
    assert sum(entry["event"] == "观测回调出错，已忽略" for entry in logs) == 1
