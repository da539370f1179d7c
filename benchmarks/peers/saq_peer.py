"""saq: asyncio; results are not kept."""

import uvloop
from saq import Queue, Worker
from tally import Tally


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""

    async def enqueue() -> None:
        queue = Queue.from_url(url)
        await queue.connect()
        for _ in range(tasks):
            await queue.enqueue("noop", payload=payload, ttl=-1)
        await queue.disconnect()

    uvloop.run(enqueue())


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""

    async def noop(_context: object, *, payload: str) -> None:  # noqa: ARG001 - saq passes it by name
        tally.count()

    async def work() -> None:
        queue = Queue.from_url(url)
        await queue.connect()
        await Worker(queue, functions=[("noop", noop)], concurrency=concurrency).start()

    uvloop.run(work())
