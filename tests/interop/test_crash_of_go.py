"""A Go worker is killed with a task in hand; a worker of ours takes it up when its lease has lapsed."""

from tests.interop.programs import GoAsynq
from tests.interop.python_side import PythonSide
from tests.waiting import wait_until


async def test_a_task_of_a_killed_go_worker_is_run_by_ours(go: GoAsynq, ours: PythonSide) -> None:
    await ours.put("a")
    async with go.running("work", "-name", "go", "-hang") as victim:
        await wait_until(lambda: ours.executed("a"), description="Go runs the task")
        victim.kill()
        await victim.wait()
    async with ours.working("py"):
        await wait_until(lambda: _runs(ours, 2), timeout=120, description="our worker runs it again")
        await wait_until(lambda: _gone(ours), description="it is done")
    assert await ours.shares() == {"go": 1, "py": 1}
    (queue,) = await ours.inspector.queues()
    assert (queue.active, queue.pending, queue.retry, queue.archived) == (0, 0, 0, 0)


async def _runs(ours: PythonSide, count: int) -> bool:
    return await ours.executed("a") == count


async def _gone(ours: PythonSide) -> bool:
    return await ours.state("a") is None
