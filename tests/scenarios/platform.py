"""A small platform for scenario tests: real services, a carrier, cards, and workers as processes."""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

import asyncpg
from redis.asyncio import Redis
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import Card, NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_log import LogSummary, read_log, summarise

KEY_ID = "scenario"
SECRET = "a-secret-for-scenarios"
SINGLETONS = ["polling_initializer", "polling_scheduler", "asynq_scheduler"]
EVERY_MODULE = ["queue_server", *SINGLETONS]
INITIALISED = "全量初始化完成"


@dataclass
class Platform:
    """Redis, PostgreSQL and a carrier, with one account; workers join as processes."""

    redis: Redis
    redis_url: str
    pool: asyncpg.Pool
    postgres_dsn: str
    folder: Path
    account_id: int = 0
    carrier_latency: timedelta = timedelta(0)
    batch_size: int = 1
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _simulator: CarrierSimulator | None = None

    async def __aenter__(self) -> Self:
        config = SimulatorConfig(
            credential=Credential(KEY_ID, SECRET),
            latency=self.carrier_latency,
            log_path=self.carrier_log_path,
        )
        self._simulator = CarrierSimulator(config)
        await self._simulator.start()
        self._stack.push_async_callback(self._simulator.stop)
        await self.open_account()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open_account(self) -> None:
        account = NewAccount(
            code="demo", carrier=Carrier.CMCC, qps=2_000.0, concurrency=200, batch_size=self.batch_size
        )
        async with self.pool.acquire() as conn:
            self.account_id = (await record_account(conn, account)).id

    @property
    def _commands(self) -> RedisClient:
        return self.redis

    @property
    def carrier_log_path(self) -> Path:
        return self.folder / "carrier.jsonl"

    def environment(self, **more: str) -> dict[str, str]:
        assert self._simulator is not None
        return {
            "JUNHONG_REDIS_URL": self.redis_url,
            "JUNHONG_POSTGRES_DSN": self.postgres_dsn,
            "JUNHONG_STORAGE_URL": f"file://{self.folder}/storage",
            "JUNHONG_GATEWAY_URL": self._simulator.url,
            "JUNHONG_GATEWAY_ALLOW_HTTP": "true",
            "JUNHONG_GATEWAY_KEY_ID": KEY_ID,
            "JUNHONG_GATEWAY_SECRET": SECRET,
            "JUNHONG_IMPORTS_REDRIVE_EVERY": "2s",
            **more,
        }

    async def join(self, role: str = "", name: str = "") -> WorkerProcess:
        """Start a worker and wait for its start-up record; an empty role or name is not set at all."""
        worker = await self.launch(self.role_environment(role, name))
        await worker.wait_started()
        return worker

    def role_environment(self, role: str = "", name: str = "") -> dict[str, str]:
        chosen = {"JUNHONG_WORKER_ROLE": role, "JUNHONG_WORKER_INSTANCE_NAME": name}
        return self.environment(**{variable: value for variable, value in chosen.items() if value})

    async def launch(self, env: Mapping[str, str]) -> WorkerProcess:
        return await self._stack.enter_async_context(WorkerProcess(env, cwd=self.folder))

    async def issue_cards(self, count: int, *, first: int = 0) -> list[Card]:
        """Write active cards into the database, as a platform that had them before the worker came."""
        rows = [NewCard(iccid=f"898604B7{number:012d}") for number in range(first, first + count)]
        async with self.pool.acquire() as conn, conn.transaction():
            return list(await insert_cards(conn, self.account_id, rows))

    async def poll_usage_every(self, seconds: int) -> None:
        """Make one configuration row: the data usage of every card, at this interval."""
        intervals = {"carddata": {"interval_s": seconds, "jitter": 0.0, "enabled": True}}
        await self.pool.execute("DELETE FROM polling_config")
        await self.pool.execute(
            "INSERT INTO polling_config (name, priority, intervals) VALUES ('scenario', 1, $1::jsonb)",
            intervals,
        )

    async def carrier_log(self) -> LogSummary:
        assert self._simulator is not None
        self._simulator._log.flush()
        return summarise(read_log(self.carrier_log_path))

    async def all_polled(self, cards: list[Card], *, since: float = 0.0, limit_s: float = 60) -> None:
        """Wait until the usage of each of these cards was read after unix second ``since``."""
        ids = [card.id for card in cards]

        async def done() -> bool:
            return not await self.pool.fetchval(
                "SELECT count(*) FROM iot_card WHERE id = ANY($1::bigint[])"
                " AND (carddata_succeeded_at IS NULL OR carddata_succeeded_at < to_timestamp($2))",
                ids,
                since,
            )

        await wait_until(done, timeout=limit_s, description=f"{len(cards)} cards polled")

    async def members_of_shards(self) -> Counter[str]:
        """How often each card id stands in the shards of the usage poll."""
        members: Counter[str] = Counter()
        async for key in self.redis.scan_iter(match="polling:{carddata:*}:due"):
            for member in await self._commands.execute_command("ZRANGE", key, 0, -1):
                members[member.decode()] += 1
        return members

    async def scores(self) -> dict[str, float]:
        """Score in unix milliseconds by card id: when the card is due, or who holds it."""
        scores: dict[str, float] = {}
        async for key in self.redis.scan_iter(match="polling:{carddata:*}:due"):
            for member in await self._commands.execute_command("ZRANGE", key, 0, -1):
                scores[member.decode()] = float(await self._commands.execute_command("ZSCORE", key, member))
        return scores

    async def cron_firings(self, entry: str) -> list[str]:
        """Ids of the tasks an entry fired, oldest first; an id ends with the instant it was scheduled for."""
        events = await self._commands.execute_command("ZRANGE", f"asynq:scheduler_history:{entry}", 0, -1)
        return [SchedulerEnqueueEvent.FromString(event).task_id for event in events]

    async def wait_for_firing(self, entry: str) -> None:
        """Wait until the entry fires once more than it has."""
        before = len(await self.cron_firings(entry))

        async def fired() -> bool:
            return len(await self.cron_firings(entry)) > before

        await wait_until(fired, timeout=30, description=f"cron entry {entry} fires")

    async def import_is(self, import_id: int, status: str) -> bool:
        found = await self.pool.fetchval("SELECT status FROM import_task WHERE id = $1", import_id)
        return bool(found == status)


def now_s() -> float:
    return time.time()
