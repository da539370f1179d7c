"""A stretch of simulated time: real workers, Redis, PostgreSQL and HTTP, and carriers that fail by plan."""

import signal
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import asyncpg
from redis.asyncio import Redis
from tests.simulation.books import CardTotals, mismatches, overlaps, recorded_totals, totals_of
from tests.simulation.carrier import CREDENTIAL, Answer, Call, DayCarrier
from tests.simulation.plan import AccountPlan, Habit, Plan
from tests.simulation.scaled_clock import TimeScale
from tests.waiting import wait_until
from tests.worker_process import ROOT, WorkerProcess

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.gateway.drivers.table import DRIVERS

_SLACK_S = 60.0
_POLLED_KINDS = ("carddata", "cardstatus")


@dataclass(frozen=True)
class Verdict:
    """What a simulated stretch of time has shown."""

    figures: Mapping[str, float]
    differing: Mapping[str, tuple[CardTotals | None, CardTotals | None]]
    lost: list[str]
    doubled: list[tuple[Call, Call]]
    refused: Counter[str]
    answers: list[Answer]

    def habits(self) -> set[Habit]:
        """What cards were seen doing."""
        return {answer.habit for answer in self.answers}

    def explain(self, cards: int = 3) -> str:
        """Tell of some cards that differ what was expected, what was recorded, and what carriers had told."""
        lines = [f"{len(self.differing)} cards differ: {dict(self.figures)}"]
        for iccid, (expected, recorded) in islice(self.differing.items(), cards):
            lines += [iccid, f"  expected {expected}", f"  recorded {recorded}"]
            lines += [f"  {answer}" for answer in self.answers if answer.iccid == iccid]
        return "\n".join(lines)


@dataclass
class SimulatedDay:
    """A simulated day is prepared, lived through, and judged."""

    plan: Plan
    scale: TimeScale
    redis: Redis
    redis_url: str
    pool: asyncpg.Pool
    postgres_dsn: str
    folder: Path
    carriers: dict[str, DayCarrier] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def live(self) -> Verdict:
        """Run from the plan's begin to its end; the last worker stops in good order before the verdict.

        Time begins when every card has its first reading, from which counting begins.
        """
        async with self._stack:
            await self._open_accounts()
            worker = await self._start_worker()
            await wait_until(self._all_read, timeout=_SLACK_S, description="every card was read once")
            self.scale.start()
            if self.plan.restart is not None:
                await self._reach(self.plan.restart, worker)
                worker.signal(signal.SIGKILL)
                await worker.wait_exit()
                worker = await self._start_worker()
            await self._reach(self.plan.end, worker)
            latest = self.scale.now() + self.scale.simulated(timedelta(seconds=_SLACK_S))
            await wait_until(
                lambda: not self._unread() or self.scale.now() > latest,
                timeout=2 * _SLACK_S,
                description="every card was read once more",
            )
            code = await worker.stop()
            assert code == 0, "\n".join(worker.raw[-20:])
        return await self._judge()

    async def _open_accounts(self) -> None:
        intervals = {
            kind: {"interval_s": seconds, "jitter": 0.1} for kind, seconds in self.plan.intervals_s.items()
        }
        await self.pool.execute("DELETE FROM polling_config")
        await self.pool.execute(
            "INSERT INTO polling_config (name, priority, intervals) VALUES ('simulated', 1, $1::jsonb)",
            intervals,
        )
        for account in self.plan.accounts:
            await self._open_account(account)

    async def _open_account(self, account: AccountPlan) -> None:
        numbers = [f"{account.prefix}{number:012d}" for number in range(self.plan.cards_per_account)]
        if account.driver != "ctcc":  # whose cards are known by 19 characters
            numbers = [f"{number}{digit % 10}" for digit, number in enumerate(numbers)]
        habits = dict(zip(numbers, self.plan.habits_of_cards(), strict=True))
        carrier = self.carriers[account.code] = DayCarrier(account, habits, self.plan, self.scale)
        await carrier.start()
        self._stack.push_async_callback(carrier.stop)
        row = NewAccount(
            code=account.code,
            carrier=account.carrier,
            driver=account.driver,
            base_url=carrier.url,
            billing_day=account.billing_day,
            usage_unit=DRIVERS[account.driver].defaults.usage_unit,
            batch_size=account.batch_size,
            qps=500.0,
            concurrency=32,
        )
        async with self.pool.acquire() as conn, conn.transaction():
            account_id = (await record_account(conn, row)).id
            await insert_cards(
                conn, account_id, [NewCard(iccid=number, real_name_required=True) for number in numbers]
            )

    async def _start_worker(self) -> WorkerProcess:
        prelude = self.scale.prelude([str(ROOT), str(ROOT / "src")])
        worker = WorkerProcess(self._environment(), cwd=self.folder, prelude=prelude)
        await self._stack.enter_async_context(worker)
        await worker.wait_started()
        return worker

    def _environment(self) -> dict[str, str]:
        limit_ms = int(self.plan.call_limit / timedelta(milliseconds=1))
        turn_ms = limit_ms + 2000
        return {
            "JUNHONG_REDIS_URL": self.redis_url,
            "JUNHONG_POSTGRES_DSN": self.postgres_dsn,
            "JUNHONG_GATEWAY_URL": next(iter(self.carriers.values())).url,
            "JUNHONG_GATEWAY_ALLOW_HTTP": "true",
            "JUNHONG_GATEWAY_KEY_ID": CREDENTIAL.key_id,
            "JUNHONG_GATEWAY_SECRET": CREDENTIAL.secret,
            "JUNHONG_GATEWAY_READ_TIMEOUT": f"{limit_ms}ms",
            "JUNHONG_GATEWAY_TOTAL_TIMEOUT": f"{limit_ms}ms",
            "JUNHONG_QUEUE_CONCURRENCY": "256",
            "JUNHONG_POLLING_VISIBILITY": f"{turn_ms}ms",
            "JUNHONG_POLLING_TURN_TIMEOUT": f"{turn_ms}ms",
            "JUNHONG_POLLING_PUT_BACK": "500ms",
            "JUNHONG_POLLING_RECONCILE_EVERY": "5s",
            "JUNHONG_LEASE_TTL": "3s",
            "JUNHONG_LEASE_RENEW": "1s",
            "JUNHONG_LEASE_RETRY": "300ms",
            **self.plan.environment,
        }

    async def _reach(self, at: datetime, worker: WorkerProcess) -> None:
        def reached() -> bool:
            assert worker.returncode is None, "the worker ended:\n" + "\n".join(worker.raw[-20:])
            return self.scale.now() >= at

        left_s = self.scale.real_s(at - self.scale.now())
        await wait_until(reached, timeout=max(left_s, 0) + _SLACK_S, description=f"it is {at}")

    async def _all_read(self) -> bool:
        return not await self.pool.fetchval("SELECT count(*) FROM iot_card WHERE cycle IS NULL")

    async def _judge(self) -> Verdict:
        answers = [answer for carrier in self.carriers.values() for answer in carrier.answers]
        calls = [call for carrier in self.carriers.values() for call in carrier.calls]
        recorded = await recorded_totals(self.pool)
        differing = mismatches(totals_of(answers), recorded)
        lost, doubled = await self._lost(), overlaps(calls)
        figures = {
            "cards": len(self.plan.accounts) * self.plan.cards_per_account,
            "simulated_hours": round((self.plan.end - self.plan.begin) / timedelta(hours=1), 2),
            "polls": len(calls),
            "mismatches": len(differing),
            "anomalies": await self.pool.fetchval("SELECT count(*) FROM usage_anomaly"),
            "outages": len(self.plan.outages),
            "lost": len(lost),
            "doubled": len(doubled),
        }
        refused = Counter(word for carrier in self.carriers.values() for word in carrier.refused)
        return Verdict(figures, differing, lost, doubled, refused, answers)

    def _unread(self) -> set[str]:
        """Return the cards nobody was told of since all was in order again."""
        unread: set[str] = set()
        for carrier in self.carriers.values():
            read = {
                call.iccid
                for call in carrier.calls
                if call.op == "usage" and call.outcome == "ok" and call.at >= self.plan.healed
            }
            unread |= carrier.numbers - read
        return unread

    async def _lost(self) -> list[str]:
        """Return cards that stand in no shard or in two, or were not read since all was in order again."""
        faults = [f"{iccid}: not read since {self.plan.healed}" for iccid in sorted(self._unread())]
        places = {kind: await self._places(kind) for kind in _POLLED_KINDS}
        for row in await self.pool.fetch("SELECT id, iccid FROM iot_card ORDER BY id"):
            faults += [
                f"{row['iccid']}: in {found} shards of {kind}"
                for kind in _POLLED_KINDS
                if (found := places[kind][row["id"]]) != 1
            ]
        return faults

    async def _places(self, kind: str) -> Counter[int]:
        commands: Any = self.redis
        places: Counter[int] = Counter()
        async for key in self.redis.scan_iter(match=f"polling:{{{kind}:*}}:due"):
            places.update(int(member) for member in await commands.zrange(key, 0, -1))
        return places
