"""streaq: asyncio on Redis streams; results are not kept."""

import uvloop
from streaq import Worker
from tally import Tally


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""

    async def enqueue() -> None:
        worker = Worker(redis_url=url)

        @worker.task(name="noop", ttl=0)
        async def noop(_payload: str) -> None:
            """Stand for the task on the producer's side."""

        async with worker:
            for _ in range(tasks):
                await noop.enqueue(payload)

    uvloop.run(enqueue())


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""
    worker = Worker(redis_url=url, concurrency=concurrency)

    @worker.task(name="noop", ttl=0)
    async def noop(_payload: str) -> None:
        tally.count()

    uvloop.run(worker.run_async())
