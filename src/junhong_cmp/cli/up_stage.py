"""Everything ``junhong up`` runs: brought up in order, taken down in reverse."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.store import count_cards
from junhong_cmp.cli.up_children import DemoKey, WorkerLinks, start_simulator, start_worker
from junhong_cmp.cli.up_demo import ACCOUNT_CODE, card_file, ensure_account, rows_in, set_intervals
from junhong_cmp.cli.up_figures import FigureReader
from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.embedded.services import EmbeddedServices
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.storage.store import open_storage

log = structlog.stdlib.get_logger(__name__)

_STOP_MARGIN: Final = timedelta(seconds=7)  # beyond the worker's own grace, for closing what it has open
_SIMULATOR_STOP_LIMIT: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What the user asked for; ``run_for`` None runs until told to stop, ``cards`` None takes the example."""

    data_dir: Path
    run_for: timedelta | None
    cards: int | None
    simulator_log: Path | None
    config_file: Path | None
    shards_per_account: int
    worker_grace: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is running once a stage is up: the import job handed in, and where to read figures."""

    pool: Pool
    task: ImportTask
    rows: int
    figures: FigureReader
    links: WorkerLinks
    processes: tuple[ChildProcess, ...]


class UpStage:
    """An up stage owns every process and connection of one ``junhong up``.

    The worker goes first when it is taken down, and what it depends on afterwards. ``take_down`` also
    follows a bring-up that failed or was cancelled half-way: it stops what had been started.
    """

    def __init__(self, options: UpOptions) -> None:
        self._options = options
        self._services = EmbeddedServices(options.data_dir)
        self._closing = AsyncExitStack()
        self._worker: ChildProcess | None = None

    @property
    def folder(self) -> DataFolder:
        """The data folder."""
        return self._services.folder

    async def bring_up(self) -> Scene:
        """Start servers, schema, simulator, demo account, import and worker.

        Raises:
            JunhongError: something could not be started.

        """
        services, key = self._services, DemoKey()
        await services.start()
        self._closing.push_async_callback(services.stop)
        await migrate(services.postgres_dsn)
        pool = await open_pool(services.postgres_dsn, max_size=4, application_name="junhong-up")
        self._closing.push_async_callback(pool.close)
        simulator, gateway_url = await start_simulator(self.folder, key, self._options.simulator_log)
        self._closing.push_async_callback(simulator.stop, _SIMULATOR_STOP_LIMIT)
        links = WorkerLinks(
            redis_url=services.redis_url,
            postgres_dsn=services.postgres_dsn,
            storage_url=self.folder.storage.as_uri(),
            gateway_url=gateway_url,
        )
        task, rows, figures = await self._prepare_import(pool, links)
        worker = self._worker = start_worker(self.folder, key, links, self._options.config_file)
        processes = (*services.processes, simulator, worker)
        return Scene(pool=pool, task=task, rows=rows, figures=figures, links=links, processes=processes)

    async def stop_worker(self) -> None:
        """Let the worker finish what it is doing; afterwards its figures are final."""
        worker = self._worker
        if worker is None or not worker.running:
            return
        code = await worker.stop(self._options.worker_grace + _STOP_MARGIN)
        if code != 0:
            log.warning("Worker 没有正常停止", exit_code=code, log_file=str(worker.spec.log_path))

    async def take_down(self) -> None:
        """Stop everything that is still running."""
        try:
            await self.stop_worker()
        finally:
            await self._closing.aclose()

    async def _prepare_import(self, pool: Pool, links: WorkerLinks) -> tuple[ImportTask, int, FigureReader]:
        """Create the account and hand the card file in; the worker finds the task when it comes up."""
        account = await ensure_account(pool)
        redis = open_redis(links.redis_url, pool_size=4, client_name="junhong-up")
        self._closing.push_async_callback(redis.aclose)
        path = await asyncio.to_thread(card_file, self.folder.root, self._options.cards)
        rows = await asyncio.to_thread(rows_in, path)
        storage = open_storage(links.storage_url)
        task = await submit_import(pool, storage, Client(redis), account_code=ACCOUNT_CODE, path=path)
        if not task.status.is_final:
            await set_intervals(pool, account, rows + await count_cards(pool, account.id))
        queue = PollingQueueManager(redis, shards_per_account=self._options.shards_per_account)
        self._closing.push_async_callback(queue.close)
        figures = FigureReader(pool, queue, account.id)
        await figures.open()
        return task, rows, figures
