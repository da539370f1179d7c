"""``junhong plan`` as processes against a real PostgreSQL."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.cli.console import Console
from tests.cli.stopped_cards import stop_for_usage
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool


@pytest.fixture
def plan(redis_url: str, postgres_dsn: str) -> Console:
    return Console("plan", redis_url, postgres_dsn)


async def test_plans_and_those_only_cards_name(pool: Pool, plan: Console) -> None:
    assert "没有套餐" in await plan("ls")
    account, other = await add_account(pool, "demo"), await add_account(pool, "other")
    await add_cards(pool, account, 2, plan="[30M]")
    await add_cards(pool, other, 1, first=50, plan="别家")
    assert await plan.json("ls", "demo") == [
        {"account": "demo", "name": "[30M]", "quota_kb": None, "cards": 2}
    ]
    dry = await plan("set", "demo", "[30M]", "--quota", "30MB", "--dry-run")
    assert dry == "套餐 [30M] 校验通过，未改动：未设 → 30MB，2 张卡\n"
    assert await pool.fetchval("SELECT count(*) FROM data_plan") == 0
    assert await plan("set", "demo", "[30M]", "-q", "30MB") == "套餐 [30M] 已新建：未设 → 30MB，2 张卡\n"
    made = await plan.json("set", "demo", "[30M]", "--quota", "1.5 GB")
    assert made == {
        "account": "demo",
        "name": "[30M]",
        "quota_kb": 1_572_864,
        "cards": 2,
        "old_quota_kb": 30_720,
        "cards_to_stop": 0,
        "cards_to_resume": 0,
        "saved": True,
    }
    same = await plan("set", "demo", "[30M]", "--quota", "1536MB")
    assert same == "套餐 [30M] 没有变化：1.5GB → 1.5GB，2 张卡\n"
    page = await plan("ls")
    assert all(words in page for words in ("[30M]", "1.5GB", "别家", "未设"))


async def test_a_smaller_plan_tells_how_many_cards_are_over_it(pool: Pool, plan: Console) -> None:
    account = await add_account(pool, "demo", protect_enabled=True)
    await add_cards(pool, account, 3, plan="S")
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute(
        "UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = id % 3 * 512", cycle
    )
    page = await plan("set", "demo", "S", "--quota", "512KB", "-n")
    assert "现有 2 张卡已达停机条件" in page
    assert "复机" not in page


async def test_a_larger_plan_tells_how_many_cards_come_back(pool: Pool, plan: Console) -> None:
    account = await add_account(pool, "demo", protect_enabled=True)
    cards = await add_cards(pool, account, 3, plan="S")
    await stop_for_usage(pool, account, cards, used_kb=512)
    assert "复机" not in await plan("set", "demo", "S", "--quota", "512KB")
    page = await plan("set", "demo", "S", "--quota", "513KB", "-n")
    assert "有 3 张因用量停机的卡不再超限，Worker 将逐张判定并复机" in page
    assert (await plan.json("set", "demo", "S", "--quota", "1MB"))["cards_to_resume"] == 3


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("set", "demo", "S", "--quota", "500"), 2, "须为带单位的流量"),
        (("set", "demo", "S", "--quota", "0MB"), 2, "须不小于 1KB"),
        (("set", "demo", "S"), 2, "--quota"),
        (("set", "demo", " ", "--quota", "1MB"), 2, "套餐"),
        (("set", "nobody", "S", "--quota", "1MB"), 1, "账号 nobody 不存在"),
        (("ls", "nobody"), 1, "账号 nobody 不存在"),
        (("rm", "demo", "S"), 1, "账号 demo 没有套餐 S"),
        (("rm", "nobody", "S"), 1, "账号 nobody 不存在"),
    ],
)
async def test_what_is_refused_is_told_and_not_written(
    pool: Pool, plan: Console, words: tuple[str, ...], code: int, said: str
) -> None:
    await add_account(pool, "demo")
    await plan(*words, code=code)
    assert said in plan.errors
    assert await pool.fetchval("SELECT count(*) FROM data_plan") == 0


async def test_a_plan_is_removed_when_no_card_uses_it(pool: Pool, plan: Console) -> None:
    account = await add_account(pool, "demo")
    await add_cards(pool, account, 2, plan="S")
    await plan("set", "demo", "S", "--quota", "1MB")
    await plan("rm", "demo", "S", code=1)
    assert "仍有 2 张卡使用套餐 S" in plan.errors
    assert await pool.fetchval("SELECT count(*) FROM data_plan") == 1
    await pool.execute("UPDATE iot_card SET plan = NULL")
    assert await plan("rm", "demo", "S") == "已删除账号 demo 的套餐 S\n"
    assert await pool.fetchval("SELECT count(*) FROM data_plan") == 0
