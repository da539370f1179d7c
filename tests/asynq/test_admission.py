"""Limits on how many handlers of a queue or of a task type run at once in one process."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping

import pytest
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server_config import ServerConfig, ServerConfigError


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


class Peak:
    """Counts how many tasks of a kind run at once, each for a moment."""

    def __init__(self, seconds: float) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self._seconds = seconds

    async def process_task(self, task: ProcessingTask) -> None:
        for kind in (task.type, f"queue {task.queue}"):
            self.running[kind] += 1
            self.most[kind] = max(self.most[kind], self.running[kind])
        await asyncio.sleep(self._seconds)
        for kind in (task.type, f"queue {task.queue}"):
            self.running[kind] -= 1
        self.done[task.type] += 1


async def test_never_more_is_taken_from_a_queue_than_its_limit_has_room_for(bench: Bench) -> None:
    gate = Gate()
    await bench.enqueue_many(10, queue="slow")
    await bench.enqueue_many(10, queue="fast")
    await bench.serve(gate, concurrency=8, queues={"slow": 5, "fast": 1}, queue_limits={"slow": 3})
    await wait_until(lambda: len(gate.entered) == 8, description="all slots are used")
    await asyncio.sleep(0.1)
    assert (await bench.size("active", "slow"), await bench.size("pending", "slow")) == (3, 7)
    assert (await bench.size("active", "fast"), await bench.size("pending", "fast")) == (5, 5)
    gate.opened.set()
    await wait_until(lambda: len(gate.entered) == 20, description="the rest follows")


async def test_two_hands_keep_a_queues_limit_between_them(bench: Bench) -> None:
    peak = Peak(0.01)
    await bench.enqueue_many(300, queue="fast")
    await bench.enqueue_many(40, queue="slow")
    await bench.serve(peak, concurrency=32, queues={"slow": 6, "fast": 1}, queue_limits={"slow": 3})
    await wait_until(lambda: peak.done.total() == 340, description="all are done")
    assert peak.most["queue slow"] == 3
    assert peak.most["queue fast"] > 25


async def test_a_strict_order_passes_over_a_queue_at_its_limit(bench: Bench) -> None:
    peak = Peak(0.02)
    await bench.enqueue_many(20, queue="high")
    await bench.enqueue_many(20, queue="low")
    await bench.serve(
        peak, concurrency=6, queues={"high": 2, "low": 1}, strict_priority=True, queue_limits={"high": 2}
    )
    await wait_until(lambda: peak.done["work"] == 40, description="all done")
    assert (peak.most["queue high"], peak.most["queue low"]) == (2, 4)


async def test_a_type_at_its_limit_lets_the_others_of_its_queue_pass(bench: Bench) -> None:
    gate, recorder = Gate(), Recorder()

    async def handler(task: ProcessingTask) -> None:
        await (gate if task.type == "slow" else recorder).process_task(task)

    await bench.enqueue_many(200, kind="slow")
    await bench.enqueue("quick")
    await bench.serve(handler, concurrency=20, type_limits={"slow": 2})
    await wait_until(lambda: recorder.seen, timeout=5, description="the quick task is reached")
    assert len(gate.entered) == 2
    gate.opened.set()
    await wait_until(lambda: len(gate.entered) == 201 - 1, timeout=20, description="the slow ones follow")


async def test_a_limited_type_keeps_its_limit_and_is_run_at_full_rate(bench: Bench) -> None:
    peak = Peak(0.03)
    await bench.enqueue_many(60, kind="slow")
    began = time.monotonic()
    await bench.serve(peak, concurrency=30, type_limits={"slow": 4})
    await wait_until(lambda: peak.done["slow"] == 60, timeout=20, description="all done")
    assert peak.most["slow"] == 4
    assert time.monotonic() - began < 3  # 60 / 4 · 0.03 s = 0.45 s of work
    await bench.wait_size("active", 0)
    assert await bench.counter("processed") == 60


async def test_a_task_put_back_is_as_it_was(bench: Bench) -> None:
    gate = Gate()
    await bench.serve(gate, type_limits={"slow": 1})
    first, second = await bench.enqueue("slow", "slow", max_retry=0)
    await wait_until(lambda: gate.entered, description="one runs")

    async def waits() -> bool:
        return (await bench.ids("pending"), await bench.size("active")) == ([second], 1)

    for _ in range(5):
        await wait_until(waits, description="the other waits")
        await asyncio.sleep(0.03)
    assert gate.entered == [first]
    raw = await bench.field(second, "msg")
    assert raw is not None
    assert TaskMessage.FromString(raw).retried == 0
    assert await bench.field(second, "pending_since") is not None
    gate.opened.set()
    await wait_until(lambda: gate.entered == [first, second], description="its turn")


async def test_a_queue_of_refused_tasks_only_is_asked_seldom(bench: Bench) -> None:
    gate = Gate()
    await bench.enqueue_many(3, kind="slow")
    await bench.serve(gate, type_limits={"slow": 1}, concurrency=50)
    await wait_until(lambda: gate.entered, description="one runs")
    await asyncio.sleep(1.0)  # rests grow meanwhile
    before = await commands(bench)
    await asyncio.sleep(1.0)
    calls = await commands(bench)
    assert calls["rpoplpush"] - before["rpoplpush"] < 12  # three a look
    assert calls["blmove"] - before["blmove"] < 10


async def commands(bench: Bench) -> Mapping[str, int]:
    stats = await bench.redis.execute_command("INFO", "commandstats")
    return Counter({name.removeprefix("cmdstat_"): int(fields["calls"]) for name, fields in stats.items()})


async def test_types_with_a_prefix_share_a_limit_and_an_exact_name_has_its_own(bench: Bench) -> None:
    gate = Gate()
    await bench.enqueue("mail:a", "mail:b", "mail:c", "mail:urgent", "other")
    await bench.serve(gate, concurrency=10, type_limits={"mail:": 2, "mail:urgent": 1})
    await wait_until(lambda: len(gate.entered) == 4, description="two mails, the urgent one, the other")
    await asyncio.sleep(0.15)
    assert len(gate.entered) == 4


async def test_a_stop_loses_nothing_of_a_crowded_queue(bench: Bench) -> None:
    gate = Gate()
    ids = await bench.enqueue_many(50, kind="slow")
    server = await bench.serve(gate, concurrency=20, type_limits={"slow": 1})
    await wait_until(lambda: gate.entered, description="one runs")
    await server.stop()
    assert sorted(await bench.ids("pending")) == sorted(ids)
    assert await bench.size("active") == 0


@pytest.mark.parametrize(
    "limits", [{"queue_limits": {"other": 1}}, {"queue_limits": {"default": 0}}, {"type_limits": {" ": 1}}]
)
def test_impossible_limits_are_refused(limits: dict[str, Mapping[str, int]]) -> None:
    with pytest.raises(ServerConfigError):
        ServerConfig(**limits)  # type: ignore[arg-type] # each field is a mapping
