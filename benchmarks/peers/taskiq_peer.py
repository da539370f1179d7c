"""taskiq with its Redis list broker: asyncio; without a result backend."""

import uvloop
from tally import Tally
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""

    async def enqueue() -> None:
        broker = ListQueueBroker(url)
        await broker.startup()
        task = broker.register_task(_nothing, task_name="noop")
        for _ in range(tasks):
            await task.kiq(payload)
        await broker.shutdown()

    uvloop.run(enqueue())


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""

    async def noop(_payload: str) -> None:
        tally.count()

    async def work() -> None:
        broker = ListQueueBroker(url)
        broker.is_worker_process = True
        broker.register_task(noop, task_name="noop")
        await run_receiver_task(broker, max_async_tasks=concurrency, run_startup=True)

    uvloop.run(work())


async def _nothing(_payload: str) -> None:
    """Stand for the task on the producer's side."""
