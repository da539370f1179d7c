"""A pool made or changed, with what the rules would do on it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.pool_store import PoolUse, list_pool_use, record_pool, recount_pools
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates
from junhong_cmp.polling.protection import billing_terms
from junhong_cmp.polling.rule_editor import RuleRefusedError


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A pool as it was, as it is now, and how many of its account's cards would be stopped, or given back."""

    old_capacity_kb: int | None
    old_threshold_kb: int | None
    pool: PoolUse
    cards_to_stop: int
    cards_to_resume: int


@dataclass(frozen=True, slots=True)
class PoolEdit:
    """A pool edit says what becomes of a pool; what is None stays as it is."""

    name: str
    capacity_kb: int | None
    threshold_kb: int | None
    removes_threshold: bool = False

    async def apply(self, conn: Conn, account: CarrierAccount, *, dry_run: bool) -> PoolChange:
        """Record the pool in a transaction that a dry run takes back.

        Raises:
            RuleRefusedError: a new pool without a capacity.

        """
        transaction = conn.transaction()
        await transaction.start()
        try:
            change = await self._apply(conn, account)
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if dry_run else transaction.commit())
        return change

    async def _apply(self, conn: Conn, account: CarrierAccount) -> PoolChange:
        old = next(iter(await list_pool_use(conn, account.id, self.name)), None)
        capacity_kb = self.capacity_kb if self.capacity_kb is not None else old and old.capacity_kb
        if capacity_kb is None:
            raise RuleRefusedError(
                f"账号 {account.code} 没有流量池 {self.name}，新建须用 --capacity 给出容量"
            )
        threshold_kb = self.threshold_kb
        if threshold_kb is None and old is not None and not self.removes_threshold:
            threshold_kb = old.threshold_kb
        await record_pool(conn, account.id, self.name, capacity_kb, threshold_kb)
        (pool,) = await list_pool_use(conn, account.id, self.name)
        await recount(conn, account, [pool.id])
        (pool,) = await list_pool_use(conn, account.id, self.name)
        now, to_stop = datetime.now(UTC), 0
        if account.protect_enabled:
            to_stop = await count_candidates(conn, account, SweepCause.POOL, now)
        to_resume = await count_candidates(conn, account, SweepCause.RAISED, now)
        return PoolChange(old and old.capacity_kb, old and old.threshold_kb, pool, to_stop, to_resume)


async def recount(conn: Conn, account: CarrierAccount, pool_ids: list[int]) -> None:
    """Add up at once what the account's pools have used in its present billing cycle."""
    terms = billing_terms(account)
    if terms is not None:  # else nobody here knows when its cycles begin
        cycle = billing_cycle(datetime.now(UTC), terms.billing_day, terms.tz)
        await recount_pools(conn, pool_ids, cycle)
