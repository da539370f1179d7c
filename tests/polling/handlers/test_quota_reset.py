"""A pause for a used-up budget ends at the account's midnight, and no other does."""

from datetime import UTC, datetime, timedelta

from structlog.testing import capture_logs
from tests.polling.handlers.firing import fire
from tests.polling.plant import add_account
from tests.waiting import FakeClock

from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.handlers.quota_reset import QuotaResetHandler

BEFORE_MIDNIGHT = datetime(2026, 3, 1, 15, 30, tzinfo=UTC)  # 23:30 in Shanghai


async def paused(pool: Pool, code: str, reason: str, tz: str = "Asia/Shanghai") -> None:
    account = await add_account(pool, code, tz=tz)
    await pool.execute(
        "UPDATE carrier_account SET paused_until = $2, paused_at = $3, pause_reason = $4 WHERE id = $1",
        account.id,
        BEFORE_MIDNIGHT + timedelta(hours=6),
        BEFORE_MIDNIGHT,
        reason,
    )


async def test_it_ends_what_midnight_renews(pool: Pool) -> None:
    await paused(pool, "here", "quota_exhausted")
    await paused(pool, "abroad", "quota_exhausted", tz="UTC")
    await paused(pool, "nowhere", "quota_exhausted", tz="Mars/Olympus")
    await paused(pool, "throttled", "throttled")
    await paused(pool, "operator", "manual: quota_exhausted")
    clock = FakeClock(BEFORE_MIDNIGHT + timedelta(minutes=15))
    handler = QuotaResetHandler(pool, clock=clock)
    with capture_logs() as logs:
        await fire(handler)
        assert logs == []
        clock.advance(timedelta(minutes=15))
        await fire(handler)
        await fire(handler)
    assert [(entry["event"], entry["account"]) for entry in logs] == [("账号额度已更新，恢复轮询", "here")]
    rows = await pool.fetch("SELECT code FROM carrier_account WHERE paused_until IS NOT NULL")
    assert {row["code"] for row in rows} == {"abroad", "nowhere", "throttled", "operator"}
