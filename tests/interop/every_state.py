"""A queue of ours with one task in each state, for the tools of Go to look at."""

import asyncio
from datetime import timedelta

from tests.interop.python_side import QUEUE, PythonSide
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask

HOUR = timedelta(hours=1)
STATES = ("active", "pending", "aggregating", "scheduled", "retry", "archived", "completed")


async def obey(task: ProcessingTask) -> None:
    if task.payload == b"fail":
        raise RuntimeError("as ordered")
    if task.payload == b"skip":
        raise SkipRetry("as ordered")
    if task.payload == b"result":
        await task.write_result(b"42")
    if task.payload == b"hang":
        await asyncio.Event().wait()


async def fill_every_state(ours: PythonSide) -> None:
    """Have our server bring tasks into each state and go on running one."""
    await ours.put("retry", b"fail", max_retry=7)
    await ours.put("archived", b"skip")
    await ours.put("completed", b"result", retention=HOUR)
    await ours.put("active", b"hang")
    for task_id, state in (("retry", "retry"), ("archived", "archived"), ("completed", "completed")):
        await wait_until(lambda i=task_id, s=state: is_in(ours, i, s), description=f"{task_id} is {state}")
    await wait_until(lambda: is_in(ours, "active", "active"), description="one task is running")
    await ours.broker.pause(QUEUE)
    await ours.put("pending")
    await ours.put("scheduled", process_in=HOUR)
    await ours.put("aggregating", group="cards")


async def is_in(ours: PythonSide, task_id: str, state: str) -> bool:
    return await ours.state(task_id) == state
