"""A worker of ours is killed with a task in hand; a Go worker takes it up when its lease has lapsed."""

from tests.interop.programs import GoAsynq
from tests.interop.python_side import PythonSide
from tests.waiting import wait_until

GO_RECOVERS_WITHIN_S = 30 + 30 + 60 + 20
"""The lease, Go's margin for skewed clocks, the interval of its recoverer, and a busy machine."""


async def test_a_task_of_our_killed_worker_is_run_by_go(go: GoAsynq, ours: PythonSide) -> None:
    await ours.put("a")
    async with ours.working("py", "--hang") as victim:
        await wait_until(lambda: ours.executed("a"), description="our worker runs the task")
        victim.kill()
        await victim.wait()
    async with go.running("work", "-name", "go"):
        await wait_until(
            lambda: _runs(ours, 2), timeout=GO_RECOVERS_WITHIN_S, description="Go runs the task again"
        )
        await wait_until(lambda: _gone(ours), description="it is done")
    assert await ours.shares() == {"go": 1, "py": 1}
    (queue,) = await ours.inspector.queues()
    assert (queue.active, queue.pending, queue.retry, queue.archived) == (0, 0, 0, 0)
    assert queue.failed_total == 1  # to Go, a worker's death is a failure of the task


async def _runs(ours: PythonSide, count: int) -> bool:
    return await ours.executed("a") == count


async def _gone(ours: PythonSide) -> bool:
    return await ours.state("a") is None
