"""arq: asyncio; results are not kept."""

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func
from tally import Tally


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""

    async def enqueue() -> None:
        pool = await create_pool(RedisSettings.from_dsn(url))
        for _ in range(tasks):
            await pool.enqueue_job("noop", payload)
        await pool.aclose()

    uvloop.run(enqueue())


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""

    async def noop(_context: object, _payload: str) -> None:
        tally.count()

    async def work() -> None:
        worker = Worker(
            [func(noop, name="noop", keep_result=0)],
            redis_settings=RedisSettings.from_dsn(url),
            max_jobs=concurrency,
            handle_signals=False,
        )
        await worker.async_run()

    uvloop.run(work())
