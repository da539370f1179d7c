"""A small polling plant for tests: one account, its cards, a rule, and every part wired together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fakes.gateway import FakeGateway

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import Card, CarrierAccount, NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling import keys
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.batch_payload import BatchPayload
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import Claim
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.tasks import PollPayload, TaskType

EPOCH = 1
HOURLY: Mapping[str, Any] = {
    kind: {"interval_s": 3600, "jitter": 0.1} for kind in ("carddata", "cardstatus", "realname")
}
_INSERT_RULE = """
INSERT INTO polling_config (name, priority, account_id, intervals) VALUES ($1, $2, $3, $4)
"""


async def add_rule(
    pool: Pool,
    intervals: Mapping[str, Any] = HOURLY,
    *,
    priority: int = 100,
    account_id: int | None = None,
) -> None:
    await pool.execute(_INSERT_RULE, "规则", priority, account_id, intervals)


async def add_account(pool: Pool, code: str = "demo", **changes: Any) -> CarrierAccount:
    fields: dict[str, Any] = {
        "code": code,
        "carrier": Carrier.CMCC,
        "qps": 10_000.0,
        "concurrency": 1000,
    } | changes
    async with pool.acquire() as conn:
        return await record_account(conn, NewAccount(**fields))


async def add_cards(
    pool: Pool, account: CarrierAccount, count: int, *, first: int = 0, **changes: Any
) -> list[Card]:
    news = [NewCard(iccid=f"898600{number:014d}", **changes) for number in range(first, first + count)]
    async with pool.acquire() as conn, conn.transaction():
        return await insert_cards(conn, account.id, news)


@dataclass
class Plant:
    """Every part of polling over one Redis and one PostgreSQL, without task queue or server."""

    pool: Pool
    dsn: str
    redis: Any  # redis.asyncio.Redis; its commands are typed as sync or async, which no test means
    gateway: FakeGateway = field(default_factory=FakeGateway)
    has_gateway: bool = True
    settings: PollingSettings = field(default_factory=PollingSettings)

    def __post_init__(self) -> None:
        self.queue = PollingQueueManager(self.redis, turn_timeout=self.settings.turn_timeout)
        self.config = PollingConfigManager(self.pool, self.dsn)
        self.stats = PollStats(self.pool)
        self.concurrency = AccountConcurrency(self.redis)
        self.lifecycle = PollingLifecycleService(self.queue, self.config)
        self.base = PollingBase(
            self.pool,
            self.queue,
            self.config,
            self.concurrency,
            self.gateway if self.has_gateway else None,
            self.stats,
            self.settings,
        )

    async def close(self) -> None:
        await self.base.close()
        await self.concurrency.close()
        await self.queue.close()

    def scheduler(self, **changes: Any) -> PollingScheduler:
        fields: dict[str, Any] = {
            "pool": self.pool,
            "redis": self.redis,
            "queue_manager": self.queue,
            "config_manager": self.config,
            "concurrency": self.concurrency,
            "client": Client(self.redis),
            "stats": self.stats,
            "has_gateway": True,
            "settings": self.settings,
        }
        return PollingScheduler(**(fields | changes))

    async def score(self, card: Card, kind: TaskType = TaskType.POLLING_CARDDATA) -> int | None:
        shard = self.queue.shard(kind, card.account_id, card.id)
        found = await self.redis.zscore(keys.shard_due(shard), str(card.id))
        return None if found is None else int(found)

    async def claim_card(self, card: Card, kind: TaskType = TaskType.POLLING_CARDDATA) -> Claim:
        """Make the card due for a second, whatever it was, and claim it."""
        shard = self.queue.shard(kind, card.account_id, card.id)
        await self.queue.seal(EPOCH, [shard])
        due = await self.queue.now_ms() - 1000
        await self.redis.zadd(keys.shard_due(shard), {str(card.id): due})
        batch = await self.queue.claim(shard, epoch=EPOCH, limit=1000, visibility=timedelta(minutes=1))
        return next(claim for claim in batch.claims if claim.card_id == card.id)

    async def task_for(self, card: Card, kind: TaskType = TaskType.POLLING_CARDDATA) -> ProcessingTask:
        claim = await self.claim_card(card, kind)
        return poll_task(kind, PollPayload(card.id, card.account_id, claim.claim, claim.due))

    async def batch_task_for(
        self, cards: Sequence[Card], kind: TaskType = TaskType.POLLING_CARDDATA
    ) -> ProcessingTask:
        """Claim the cards, wherever they wait, and put them into one task."""
        claims = [await self.claim_card(card, kind) for card in cards]
        polls = [
            PollPayload(card.id, card.account_id, claim.claim, claim.due)
            for card, claim in zip(cards, claims, strict=True)
        ]
        return poll_task(kind, BatchPayload(cards[0].account_id, polls))

    async def totals(self) -> dict[str, int]:
        await self.stats.flush()
        rows: Sequence[Any] = await self.pool.fetch("SELECT * FROM poll_minute")
        names = ("due", "done", "failed", "throttled", "superseded")
        return {name: total for name in names if (total := sum(row[name] for row in rows))}


def poll_task(kind: TaskType, payload: PollPayload | BatchPayload) -> ProcessingTask:
    return ProcessingTask(
        id="t", type=kind, deadline=datetime.now(UTC) + timedelta(minutes=1), payload=payload.encode()
    )
