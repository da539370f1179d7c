"""What `junhong status` shows: leader, instances, queues, shards, rates, the last minute, imports."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.inspector import Inspector, QueueInfo
from junhong_cmp.asynq.inspector_types import ServerStatus
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.leadership.lease import LeadershipView
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.polling.account_load import AccountLoads
from junhong_cmp.polling.hold_notice import held_for
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.stats_store import load_totals
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType
from junhong_cmp.worker.labels import WorkerLabels

RECENT_IMPORTS: Final = 10

_IMPORTS = """
SELECT t.id, a.code AS account, t.file_name, t.status, t.total, t.imported, t.skipped, t.rejected, t.error,
    t.waits_for, t.created_at, t.finished_at
FROM import_task AS t JOIN carrier_account AS a ON a.id = t.account_id
ORDER BY t.id DESC LIMIT $1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A worker process as its heartbeat shows it; role, name and version are empty where it is not ours."""

    role: str
    name: str
    version: str
    host: str
    pid: int
    server_id: str
    status: str
    concurrency: int
    active: int
    queues: Mapping[str, int]
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """The cards of one account that wait for one kind of poll; overdue means due for over a minute."""

    account: str
    task_type: str
    cards: int
    due: int
    overdue: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """An account's calls a second as configured and as its carrier grants them, and its calls in flight."""

    account: str
    qps: float
    granted_qps: float
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMinute:
    """Polls of the last full minute and of the one that runs: of all from ``since`` on."""

    since: datetime
    done: int
    failed: int
    throttled: int
    superseded: int
    lag_p95_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole report; ``claims_held`` is for how long nothing is claimed because Redis lost data."""

    at: datetime
    leadership: LeadershipView
    claims_held: timedelta | None
    instances: Sequence[Instance]
    queues: Sequence[QueueInfo]
    shards: Sequence[ShardRow]
    rates: Sequence[RateRow]
    last_minute: LastMinute
    imports: Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values; durations become milliseconds."""
        queues = [asdict(queue) for queue in self.queues]
        for queue in queues:
            queue["latency_ms"] = round(queue.pop("latency").total_seconds() * 1000)
        return {
            "at": self.at,
            "leadership": _leadership_as_json(self.leadership),
            "claims_held_s": None if self.claims_held is None else self.claims_held.total_seconds(),
            "instances": [asdict(instance) for instance in self.instances],
            "queues": queues,
            "shards": [asdict(row) for row in self.shards],
            "totals": {
                name: sum(getattr(row, name) for row in self.shards) for name in ("cards", "due", "overdue")
            },
            "rates": [asdict(row) for row in self.rates],
            "last_minute": asdict(self.last_minute),
            "imports": [dict(item) for item in self.imports],
        }


class StatusReader:
    """A status reader collects the report from Redis and PostgreSQL; it changes nothing in either."""

    def __init__(self, redis: RedisClient, pool: Pool, *, shards_per_account: int) -> None:
        self._redis = redis
        self._inspector = Inspector(redis)
        self._lease = LeaseStore(redis)
        self._loads = AccountLoads(redis)
        self._queue = PollingQueueManager(redis, shards_per_account=shards_per_account)
        self._pool = pool

    async def read(self) -> Status:
        """Return the state of now."""
        now = datetime.now(UTC)
        async with self._pool.acquire() as conn:
            accounts = await list_accounts(conn)
            since = _start_of_last_minute(now)
            totals = await load_totals(conn, since)
            imports = [dict(row) for row in await conn.fetch(_IMPORTS, RECENT_IMPORTS)]
        lag = totals.lag_p95
        return Status(
            at=now,
            leadership=await self._lease.read(),
            claims_held=await held_for(self._redis),
            instances=await self._instances(),
            queues=await self._inspector.queues(),
            shards=[
                await self._shard_row(account, task_type)
                for account in accounts
                for task_type in POLLING_TASK_TYPES
            ],
            rates=await self._rates(accounts),
            last_minute=LastMinute(
                since=since,
                done=totals.done,
                failed=totals.failed,
                throttled=totals.throttled,
                superseded=totals.superseded,
                lag_p95_ms=None if lag is None else round(lag.total_seconds() * 1000),
            ),
            imports=imports,
        )

    async def close(self) -> None:
        """Release what the reader holds; its connections belong to the caller."""
        await self._queue.close()

    async def _instances(self) -> list[Instance]:
        found = [_instance(server) for server in await self._inspector.servers()]
        return sorted(found, key=lambda one: (one.role, one.name, one.host, one.pid))

    async def _rates(self, accounts: Sequence[CarrierAccount]) -> list[RateRow]:
        loads = await self._loads.read(accounts)
        return [
            RateRow(account=each.code, qps=each.qps, granted_qps=load.qps, in_flight=load.in_flight)
            for each in accounts
            if (load := loads.get(each.id)) is not None
        ]

    async def _shard_row(self, account: CarrierAccount, task_type: TaskType) -> ShardRow:
        counts = await self._queue.counts([account.id], task_types=[task_type])
        return ShardRow(
            account=account.code,
            task_type=task_type.value,
            cards=counts.cards,
            due=counts.due,
            overdue=counts.overdue,
        )


def _instance(server: ServerStatus) -> Instance:
    info, labels = server.info, WorkerLabels.read(server.info.labels)
    return Instance(
        role=labels.role,
        name=labels.instance_name,
        version=labels.version,
        host=info.host,
        pid=info.pid,
        server_id=info.server_id,
        status=info.status,
        concurrency=info.concurrency,
        active=len(server.workers),
        queues=dict(info.queues),
        started_at=info.start_time.ToDatetime(tzinfo=UTC),
    )


def _leadership_as_json(view: LeadershipView) -> dict[str, Any]:
    lease = view.lease
    leader = {
        "name": lease.name,
        "host": lease.host,
        "pid": lease.pid,
        "holder": lease.holder,
        "term": lease.epoch,
        "since": lease.led_since,
        "expires_in_s": lease.expires_in,
    }
    standbys = [
        {
            "name": item.name,
            "host": item.host,
            "pid": item.pid,
            "holder": item.holder,
            "since": item.waits_since,
        }
        for item in view.standbys
    ]
    return {"leader": leader if lease.alive else None, "standbys": standbys}


def _start_of_last_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0) - timedelta(minutes=1)
