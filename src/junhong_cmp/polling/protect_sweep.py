"""Cards the rules would stop or resume, found in PostgreSQL whoever missed them before."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

import structlog

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.protection import IN_SERVICE
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.protection import billing_terms

log = structlog.stdlib.get_logger(__name__)

_PAGE: Final = 500
_MOST_PER_RUN: Final = 10_000
_BUSY_S: Final = 150
"""For how long a run may keep an account busy: half the time to the next one, the rest is for its polls."""

_IN_SERVICE: Final = [str(status) for status in IN_SERVICE]


class SweepCause(Enum):
    """Why cards are looked for; the values are the words of the log."""

    USAGE = "用量超限"
    ROLLOVER = "周期结转"
    EXPIRY = "到期"


# A coarse look that may find too many: the task decides, card by card. What failed rests (see RETRY_AFTER).
_CANDIDATES = """
    SELECT c.id FROM iot_card AS c
    WHERE c.account_id = $1 AND c.id > $2 AND c.deleted_at IS NULL
        AND $3::text IS NOT NULL AND $4::timestamptz IS NOT NULL AND $5::text[] IS NOT NULL
        AND {condition}
        AND NOT EXISTS (
            SELECT FROM card_operation AS o WHERE o.card_id = c.id AND (
                o.status IN ('pending', 'sent')
                OR (o.status IN ('failed', 'unknown') AND o.sends > 0
                    AND o.updated_at > $4 - interval '6 hours')))
    ORDER BY c.id LIMIT $6
"""
_CONDITIONS: Final[Mapping[SweepCause, str]] = {
    SweepCause.USAGE: """
        c.cycle = $3 AND c.status = ANY ($5) AND (
            (c.threshold_kb > 0 AND c.cycle_used_kb >= c.threshold_kb)
            OR EXISTS (
                SELECT FROM data_plan AS p
                WHERE p.account_id = c.account_id AND p.name = c.plan AND c.cycle_used_kb >= p.quota_kb)
            OR EXISTS (
                SELECT FROM data_pool AS d
                WHERE d.id = c.pool_id AND d.cycle = $3
                    AND d.used_kb >= coalesce(nullif(d.threshold_kb, 0), d.capacity_kb)
                    AND coalesce(nullif(d.threshold_kb, 0), d.capacity_kb) > 0))
        AND NOT EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.cycle = $3
                AND o.reason IN ('over_plan', 'threshold', 'pool'))
    """,
    SweepCause.ROLLOVER: """
        c.status = 'suspended' AND c.stop_reason IN ('over_plan', 'threshold', 'pool') AND NOT EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.cycle >= $3
                AND o.reason = c.stop_reason)
    """,
    SweepCause.EXPIRY: """
        c.expires_at <= $4 AND c.status = ANY ($5) AND NOT EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.reason = 'expired'
                AND o.updated_at >= c.expires_at)
    """,
}


@dataclass(slots=True)
class ProtectSweep:
    """A protect sweep hands cards to be decided about; swept twice, a card is decided about once or so.

    It is the net under what a reading triggers at once: it finds what a crash, a flushed Redis or a changed
    limit has left undone. It hands over no more than an account can take until it looks again.
    """

    pool: Pool
    config_manager: PollingConfigManager
    tasks: CardTasks
    clock: Clock = field(default_factory=SystemClock)
    page: int = _PAGE

    async def sweep(self, cause: SweepCause, draining: asyncio.Event) -> int:
        """Return how many cards were handed over; ends early when ``draining`` is set."""
        total = 0
        for account in self.config_manager.snapshot.accounts.values():
            if (
                _concerns(cause, account)
                and account.polling_enabled
                and not account.is_paused(self.clock.now())
            ):
                total += await self._sweep_account(cause, account, draining)
        return total

    async def _sweep_account(
        self, cause: SweepCause, account: CarrierAccount, draining: asyncio.Event
    ) -> int:
        terms, now = billing_terms(account), self.clock.now()
        if terms is None:
            return 0
        cycle = billing_cycle(now, terms.billing_day, terms.tz)
        query = _CANDIDATES.format(condition=_CONDITIONS[cause])
        most = min(_MOST_PER_RUN, max(self.page, int(account.qps * _BUSY_S)))
        handed, after_id = 0, 0
        while not draining.is_set() and handed < most:
            rows = await self.pool.fetch(query, account.id, after_id, cycle, now, _IN_SERVICE, self.page)
            ids = [row["id"] for row in rows]
            handed += await self.tasks.protect(ids)
            if len(ids) < self.page:
                break
            after_id = ids[-1]
        if handed:
            log.info("停复机待判定", account=account.code, cause=cause.value, cards=handed)
        return handed


async def count_candidates(conn: Conn, account: CarrierAccount, cause: SweepCause, now: datetime) -> int:
    """Return how many cards sweeps of the account would hand over, did it ask for that: too many, if any."""
    terms = billing_terms(account)
    if terms is None:
        return 0
    query = f"SELECT count(*) FROM ({_CANDIDATES.format(condition=_CONDITIONS[cause])}) AS c"  # noqa: S608 - constant
    cycle = billing_cycle(now, terms.billing_day, terms.tz)
    return int(await conn.fetchval(query, account.id, 0, cycle, now, _IN_SERVICE, None))


def _concerns(cause: SweepCause, account: CarrierAccount) -> bool:
    match cause:
        case SweepCause.USAGE:
            return account.protect_enabled
        case SweepCause.EXPIRY:
            return account.stop_on_expiry
        case SweepCause.ROLLOVER:
            return True
