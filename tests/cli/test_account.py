"""``junhong account ls``, ``show`` and ``resume`` as processes against real services."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from tests.cli.console import Console
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling import keys
from junhong_cmp.polling.budgets import budgets_at
from junhong_cmp.polling.pause_store import pause_polling


@pytest.fixture
def account_command(redis_url: str, postgres_dsn: str) -> Console:
    return Console("account", redis_url, postgres_dsn)


async def use(redis: Redis, pool: Pool, calls: int) -> None:
    """Have so many calls counted toward both budgets of a limited account."""
    account = await add_account(pool, "limited", daily_quota=100, monthly_quota=1000)
    budgets = budgets_at(account, datetime.now(UTC))
    assert budgets is not None
    for budget in (budgets.day, budgets.month):
        await redis.set(keys.account_budget(account.id, budget.name), calls)


async def test_ls_shows_what_is_left_and_who_rests(
    pool: Pool, redis: Redis, account_command: Console
) -> None:
    assert "没有账号" in await account_command("ls")
    assert await account_command.json("ls") == []
    free = await add_account(pool, "free", qps=0.1, stop_on_expiry=True, protect_enabled=True)
    await use(redis, pool, 130)
    await add_cards(pool, free, 3)
    async with pool.acquire() as conn:
        await pause_account(conn, free.id, datetime.now(UTC) + timedelta(hours=1), "throttled")
    page = await account_command("ls")
    for words in (
        "free",
        "0.1",
        "用量、到期",
        "被限流",
        "不限",
        "limited",
        "已用 130，剩 0",
        "已用 130，剩 870",
        "正常",
    ):
        assert words in page
    first, second = await account_command.json("ls")
    assert (first["code"], first["qps"], first["cards"]["total"], first["quotas"]) == ("free", 0.1, 3, None)
    assert first["pause_reason"] == "throttled"
    assert second["quotas"]["day"] | {"renewed_at": None} == {
        "limit": 100,
        "used": 130,
        "left": 0,
        "renewed_at": None,
    }
    assert second["paused_until"] is None


async def test_a_rate_lowered_for_its_carrier_is_shown_beside_the_configured_one(
    pool: Pool, redis: Redis, account_command: Console
) -> None:
    account = await add_account(pool, "slow", qps=50)
    await add_account(pool, "third", qps=1 / 3)
    now_s, _ = await redis.time()
    await redis.set(keys.account_granted(account.id), f"12.5 {now_s * 1_000_000} 0")
    page = await account_command("ls")
    assert "12.5/50" in page
    assert "0.333/" not in page
    assert "12.5/s，因限流低于所设的 50/s" in await account_command("show", "slow")
    found = await account_command.json("show", "slow")
    assert (found["qps"], found["granted_qps"], found["calls_in_flight"]) == (50, 12.5, 0)


async def test_show_has_every_setting_and_the_cards_by_state(
    pool: Pool, redis: Redis, account_command: Console
) -> None:
    account = await add_account(pool, "demo", daily_quota=7, per_card_min_gap=timedelta(minutes=2))
    await add_cards(pool, account, 4)
    await pool.execute("UPDATE iot_card SET status = 'active'")
    await pool.execute("UPDATE iot_card SET status = 'suspended', stop_reason = 'over_plan' WHERE id % 4 = 0")
    page = await account_command("show", "demo")
    for words in (
        "已激活 3，停机 1",
        "超套餐 1",
        "已用 0，剩 7，",
        "per_card_min_gap_s",
        "120",
        "不限",
        "0.001 到",
    ):
        assert words in page
    found = await account_command.json("show", "demo")
    assert found["per_card_min_gap_s"] == 120
    assert found["cards"] == {
        "total": 4,
        "by_status": {"active": 3, "suspended": 1},
        "stopped": {"over_plan": 1},
    }
    await account_command("show", "nobody", code=1)
    assert "账号 nobody 不存在，现有账号：demo" in account_command.errors


async def test_accounts_are_shown_without_redis(pool: Pool, postgres_dsn: str) -> None:
    await add_account(pool, "demo", monthly_quota=5)
    alone = Console("account", "redis://127.0.0.1:1/0", postgres_dsn)
    assert "未知/5" in await alone("ls")
    assert "警告：Redis 无法访问" in alone.errors
    found = await alone.json("show", "demo")
    assert (found["quotas"], found["granted_qps"]) == (None, None)


async def test_accounts_without_a_time_zone_or_polling_are_shown(
    pool: Pool, account_command: Console
) -> None:
    await add_account(pool, "mars", tz="Mars/Base", daily_quota=5, polling_enabled=False)
    assert "已停用轮询" in await account_command("ls")
    assert "Mars/Base" in await account_command("show", "mars")


async def test_resume_ends_a_pause_and_says_what_it_was_for(pool: Pool, account_command: Console) -> None:
    account = await add_account(pool)
    assert await account_command("resume", "demo") == "没有生效中的暂停：账号 demo\n"
    async with pool.acquire() as conn:
        await pause_polling(conn, account.id, None, None, "换证书")
    assert "暂停到人工恢复为止，人工暂停：换证书" in await account_command("ls")
    assert await account_command("resume", "demo") == "已恢复：账号 demo，原因曾为 人工暂停：换证书\n"
    assert await pool.fetchval("SELECT paused_until FROM carrier_account") is None
    await account_command("resume", "nobody", code=1)
