from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates


async def test_cards_a_rule_would_find_are_counted_for_one_account(pool: Pool) -> None:
    account, other = await add_account(pool, "one"), await add_account(pool, "other")
    await add_cards(pool, account, 4, plan="S")
    await add_cards(pool, other, 2, first=50, plan="S")
    now = datetime.now(UTC)
    cycle = billing_cycle(now, 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute("UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = 5", cycle)
    await pool.execute("INSERT INTO data_plan (account_id, name, quota_kb) VALUES ($1, 'S', 5)", account.id)
    await pool.execute(
        "UPDATE iot_card SET expires_at = $1 WHERE id IN (SELECT min(id) FROM iot_card)",
        now - timedelta(days=1),
    )
    async with pool.acquire() as conn:
        assert await count_candidates(conn, account, SweepCause.USAGE, now) == 4
        assert await count_candidates(conn, account, SweepCause.EXPIRY, now) == 1
        assert await count_candidates(conn, account, SweepCause.ROLLOVER, now) == 0
        assert await count_candidates(conn, other, SweepCause.USAGE, now) == 0


async def test_without_a_time_zone_there_is_no_cycle_to_judge_by(pool: Pool) -> None:
    account = await add_account(pool, "mars", tz="Mars/Base")
    async with pool.acquire() as conn:
        assert await count_candidates(conn, account, SweepCause.USAGE, datetime.now(UTC)) == 0
