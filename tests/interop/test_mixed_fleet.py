"""Two Go servers and two of ours on one queue: every task is run exactly once."""

import asyncio
from contextlib import AsyncExitStack

from tests.interop.programs import GoAsynq
from tests.interop.python_side import QUEUE, PythonSide
from tests.waiting import wait_until

from junhong_cmp.asynq.task import EnqueueOptions, Task

TASKS_EACH = 10_000


async def test_a_mixed_fleet_runs_each_task_once(go: GoAsynq, ours: PythonSide) -> None:
    async with AsyncExitStack() as fleet:
        for number in (1, 2):
            await fleet.enter_async_context(go.running("work", "-name", f"go-{number}"))
            await fleet.enter_async_context(ours.working(f"py-{number}"))
        await wait_until(lambda: _are_up(ours, 4), timeout=30, description="four servers show themselves")
        mine = [
            (Task("interop:count"), EnqueueOptions(queue=QUEUE, task_id=f"py-{number}"))
            for number in range(TASKS_EACH)
        ]
        filling = go.run("bulk", "-queue", QUEUE, "-prefix", "go", "-count", str(TASKS_EACH))
        await asyncio.gather(filling, _fill(ours, mine))
        await wait_until(lambda: _drained(ours), timeout=120, description="all tasks are processed")

    executions = await ours.executions()
    assert len(executions) == 2 * TASKS_EACH
    assert set(executions.values()) == {1}
    shares = await ours.shares()
    assert set(shares) == {"go-1", "go-2", "py-1", "py-2"}
    (queue,) = await ours.inspector.queues()
    assert (queue.size, queue.failed_total, queue.processed_total) == (0, 0, 2 * TASKS_EACH)
    assert await ours.redis.execute_command("EXISTS", f"asynq:{{{QUEUE}}}:lease") == 0
    seen = await go.run("inspect", QUEUE)
    assert seen["queue"]["processed_total"] == 2 * TASKS_EACH


async def _fill(ours: PythonSide, items: list[tuple[Task, EnqueueOptions]]) -> None:
    for start in range(0, len(items), 500):  # in portions, so that Go's tasks come in between
        await ours.client.enqueue_many(items[start : start + 500])


async def _are_up(ours: PythonSide, count: int) -> bool:
    return await ours.servers() == count


async def _drained(ours: PythonSide) -> bool:
    (queue,) = await ours.inspector.queues()
    return queue.processed_total >= 2 * TASKS_EACH and queue.size == 0
