"""The backlog gate: claims never outrun what is processed before they run out, and never starve anybody."""

from collections import deque
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant
from tests.waiting import FakeClock

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.backlog import BacklogGate, DrainWindow
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_QUEUE

TICK_S = 0.05
VISIBILITY = timedelta(seconds=120)
HALF_S = 60


class Simulation:
    """Endlessly many due cards before a queue that consumers empty at a given rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.now = 0.0
        self.window = DrainWindow(VISIBILITY, unproven=256)
        self.waiting: deque[float] = deque()
        self.processed = 0
        self.idle_s = 0.0
        self.waits: list[float] = []
        self.expired = 0
        self._budget = 0.0

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.window.observe(self.now, len(self.waiting), self.processed)
            room = min(5000, self.window.limit(self.now)) - len(self.waiting)
            self.waiting.extend([self.now] * max(0, room))
            self.now += TICK_S
            self._drain()

    def settle(self) -> None:
        """Let what was learnt of the rate take effect, and forget what happened meanwhile."""
        self.run(4 * VISIBILITY.total_seconds())
        self.waits.clear()
        self.expired, self.idle_s = 0, 0.0

    def _drain(self) -> None:
        while self.waiting and self.now - self.waiting[0] > VISIBILITY.total_seconds():
            self.waiting.popleft()  # found superseded, which takes no time
            self.processed += 1
            self.expired += 1
        self._budget += self.rate * TICK_S
        while self._budget >= 1:
            self._budget -= 1
            if self.waiting:
                self.waits.append(self.now - self.waiting.popleft())
                self.processed += 1
            else:
                self.idle_s += 1 / self.rate


@pytest.mark.parametrize("rate", [0.2, 1, 10, 100, 2000])
def test_no_poll_waits_longer_than_half_a_claim_once_the_rate_is_known(rate: float) -> None:
    simulation = Simulation(rate)
    simulation.settle()
    simulation.run(600)
    assert max(simulation.waits) <= HALF_S * 1.1
    assert simulation.expired == 0


@pytest.mark.parametrize("rate", [10, 100, 2000])
def test_fast_consumers_are_supplied_within_seconds(rate: float) -> None:
    simulation = Simulation(rate)
    simulation.run(30)
    assert simulation.idle_s < 2


def test_it_follows_consumers_that_slow_down_and_recover() -> None:
    simulation = Simulation(100)
    simulation.run(120)
    simulation.rate = 2
    simulation.settle()
    simulation.run(300)
    assert max(simulation.waits) <= HALF_S * 1.1
    assert simulation.expired == 0
    simulation.rate = 100
    simulation.run(60)
    assert simulation.idle_s < 2


def test_consumers_that_stop_are_given_next_to_nothing() -> None:
    simulation = Simulation(100)
    simulation.run(120)
    simulation.rate = 0
    simulation.run(61)
    assert simulation.window.limit(simulation.now) == 8


def test_a_counter_that_begins_anew_is_no_throughput() -> None:
    window = DrainWindow(VISIBILITY, unproven=10)
    window.observe(0, 5, 1000)
    window.observe(1, 995, 1900)
    window.observe(2, 5, 1990)
    assert window.limit(2) == 1990 - 1005
    window.observe(3, 5, 3)
    window.observe(4, 100, 30)
    assert window.limit(4) == 30 - 8


def test_what_a_predecessor_left_is_of_unknown_age_and_no_throughput() -> None:
    window = DrainWindow(VISIBILITY, unproven=10)
    window.observe(0, 5000, 0)
    window.observe(1, 10, 5000)
    assert window.limit(1) == 10


async def enqueue(plant: Plant, count: int) -> None:
    options = EnqueueOptions(queue=POLLING_QUEUE)
    await Client(plant.redis).enqueue_many([(Task("t"), options)] * count)


async def process(plant: Plant, count: int) -> None:
    broker = Broker(plant.redis)
    tasks = (await broker.dequeue(POLLING_QUEUE, count, owner="w")).tasks
    await broker.ack(POLLING_QUEUE, [Ack(AckKind.DONE, task) for task in tasks])


async def test_the_gate_reads_the_queue(plant: Plant, clock: FakeClock) -> None:
    settings = PollingSettings(unproven_backlog=100, high_water=400, low_water=200)
    gate = BacklogGate(Broker(plant.redis), settings, monotonic=clock.monotonic)
    assert await gate.room() == 100
    await enqueue(plant, 300)
    assert await gate.room() == 0
    await process(plant, 220)
    assert await gate.room() == 220 - 80
    with capture_logs() as logs:
        clock.advance(timedelta(seconds=61))
        assert await gate.room() == 0
    assert [entry["event"] for entry in logs] == ["轮询处理速度不足，按处理速度收紧认领"]
    await enqueue(plant, 320)
    with capture_logs() as logs:
        assert await gate.room() == 0
        await process(plant, 250)
        assert await gate.room() == 100
    assert [entry["event"] for entry in logs] == [
        "轮询积压达到高水位，暂停认领",
        "轮询积压回落，恢复认领",
    ]
