"""Everything ``junhong up`` runs: brought up in order, taken down in reverse."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import count_cards
from junhong_cmp.cli.up_carriers import DemoCarrier
from junhong_cmp.cli.up_children import RunningSimulator, WorkerLinks, start_simulators, start_worker
from junhong_cmp.cli.up_demo import card_file, ensure_account, poll_only, rows_in, set_intervals
from junhong_cmp.cli.up_figures import FigureReader
from junhong_cmp.cli.up_imports import DemoImports
from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.embedded.demo_cards import GOOD_CARDS
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.embedded.services import EmbeddedServices
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.storage.store import open_storage

log = structlog.stdlib.get_logger(__name__)

_STOP_MARGIN: Final = timedelta(seconds=7)  # beyond the worker's own grace, for closing what it has open
_SIMULATOR_STOP_LIMIT: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What the user asked for; ``run_for`` None runs until told to stop.

    ``cards`` are split over the ``carriers``; None takes the example, or as many as it has for several.
    """

    data_dir: Path
    run_for: timedelta | None
    cards: int | None
    carriers: tuple[DemoCarrier, ...]
    simulator_log: Path | None
    config_file: Path | None
    shards_per_account: int
    worker_grace: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is running once a stage is up: the imports handed in, and where to read figures."""

    pool: Pool
    imports: DemoImports
    figures: FigureReader
    links: WorkerLinks
    simulators: tuple[RunningSimulator, ...]
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

    def reserve(self) -> None:
        """Make sure of the data folder before anything is said or started.

        Raises:
            ConfigError, DependencyUnavailableError: it is not usable, or in use; nothing is to be taken down.

        """
        self._services.reserve()
        self._closing.callback(self.folder.close)

    async def bring_up(self) -> Scene:
        """Start servers, schema, simulators, accounts, imports and worker.

        Raises:
            JunhongError: something could not be started.

        """
        services = self._services
        await services.start()
        self._closing.push_async_callback(services.stop)
        await migrate(services.postgres_dsn)
        pool = await open_pool(services.postgres_dsn, max_size=4, application_name="junhong-up")
        self._closing.push_async_callback(pool.close)
        links = WorkerLinks(
            redis_url=services.redis_url,
            postgres_dsn=services.postgres_dsn,
            storage_url=self.folder.storage.as_uri(),
        )
        options = self._options
        simulators = await start_simulators(self.folder, options.carriers, options.simulator_log)
        for simulator in simulators:
            self._closing.push_async_callback(simulator.process.stop, _SIMULATOR_STOP_LIMIT)
        imports, figures = await self._prepare_imports(pool, links, simulators)
        worker = self._worker = start_worker(self.folder, simulators, links, options.config_file)
        carriers = (simulator.process for simulator in simulators)
        return Scene(
            pool=pool,
            imports=imports,
            figures=figures,
            links=links,
            simulators=tuple(simulators),
            processes=(*services.processes, *carriers, worker),
        )

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

    async def _prepare_imports(
        self, pool: Pool, links: WorkerLinks, simulators: Sequence[RunningSimulator]
    ) -> tuple[DemoImports, FigureReader]:
        """Create the accounts and hand a card file in for each; the worker finds them when it comes up."""
        carriers = [simulator.carrier for simulator in simulators]
        accounts = [await ensure_account(pool, each.carrier, each.url) for each in simulators]
        await poll_only(pool, carriers)
        redis = open_redis(links.redis_url, pool_size=4, client_name="junhong-up")
        self._closing.push_async_callback(redis.aclose)
        paths = await asyncio.to_thread(self._card_files, carriers)
        imports = await self._hand_in(pool, redis, accounts, paths)
        queue = PollingQueueManager(redis, shards_per_account=self._options.shards_per_account)
        self._closing.push_async_callback(queue.close)
        figures = FigureReader(pool, redis, queue, accounts)
        await figures.open()
        return imports, figures

    def _card_files(self, carriers: Sequence[DemoCarrier]) -> list[Path]:
        cards: Sequence[int | None] = [self._options.cards]
        if not carriers[0].alone:
            cards = shares(self._options.cards or GOOD_CARDS, len(carriers))
        return [card_file(self.folder.root, *each) for each in zip(carriers, cards, strict=True)]

    async def _hand_in(
        self, pool: Pool, redis: RedisClient, accounts: Sequence[CarrierAccount], paths: Sequence[Path]
    ) -> DemoImports:
        """Hand the files in; an account with new cards is polled as the number of all of them allows."""
        storage, client = open_storage(self.folder.storage.as_uri()), Client(redis)
        tasks = [
            await submit_import(pool, storage, client, account_code=account.code, path=path)
            for account, path in zip(accounts, paths, strict=True)
        ]
        rows = sum([await asyncio.to_thread(rows_in, path) for path in paths])
        present = sum([await count_cards(pool, account.id) for account in accounts])
        for account, task in zip(accounts, tasks, strict=True):
            if not task.status.is_final:
                await set_intervals(pool, account, rows + present)
        return DemoImports(tasks, rows)


def shares(cards: int, accounts: int) -> list[int]:
    """Split cards evenly: no account has two more than another."""
    each, left = divmod(cards, accounts)
    return [each + (place < left) for place in range(accounts)]
