"""``junhong pool ls``, ``set`` and ``rm`` as processes against a real PostgreSQL."""

import pytest
from tests.cli.console import Console
from tests.cli.pooled_cards import use
from tests.polling.plant import add_account, add_cards

from junhong_cmp.db.pool import Pool


@pytest.fixture
def pools(redis_url: str, postgres_dsn: str) -> Console:
    return Console("pool", redis_url, postgres_dsn)


async def test_a_pool_is_made_changed_listed_and_removed(pool: Pool, pools: Console) -> None:
    assert "没有流量池" in await pools("ls")
    await add_account(pool, "demo")
    await add_account(pool, "other")
    made = await pools("set", "demo", "[共享]", "--capacity", "100GB", "-t", "95GB")
    assert made == ("流量池 [共享] 已新建：容量 未设 → 100GB，停机线 未设 → 95GB，0 张卡，本周期已用 0KB\n")
    changed = await pools("set", "demo", "[共享]", "-q", "1TB")
    assert changed == "流量池 [共享] 已修改：容量 100GB → 1TB，0 张卡，本周期已用 0KB\n"
    assert "流量池 [共享] 没有变化：" in await pools("set", "demo", "[共享]", "-q", "1TB", "-t", "95GB")
    (row,) = await pools.json("ls", "demo")
    assert (row["account"], row["name"], row["capacity_kb"]) == ("demo", "[共享]", 1024**3)
    assert (row["threshold_kb"], row["used_kb"], row["cards"]) == (95 * 1024**2, 0, 0)
    assert await pools.json("ls", "other") == []
    page = await pools("ls")
    assert all(words in page for words in ("demo", "[共享]", "1TB", "95GB", "0%"))
    assert await pools("rm", "demo", "[共享]") == "已删除账号 demo 的流量池 [共享]\n"
    assert await pool.fetchval("SELECT count(*) FROM data_pool") == 0


async def test_a_dry_run_tells_what_would_be_stopped(pool: Pool, pools: Console) -> None:
    account = await add_account(pool, "demo", protect_enabled=True)
    cards = await add_cards(pool, account, 2)
    await pools("set", "demo", "池", "--capacity", "1GB")
    await pool.execute("UPDATE iot_card SET pool_id = (SELECT id FROM data_pool)")
    await use(pool, account, cards, 300)
    page = await pools("set", "demo", "池", "--threshold", "500KB", "--dry-run")
    assert page == (
        "流量池 池 校验通过，未改动：容量 1GB → 1GB，停机线 未设 → 500KB，2 张卡，本周期已用 600KB\n"
        "提示：账号 demo 现有 2 张卡因流量池已达停机条件，Worker 将在 5 分钟内逐张判定并停机\n"
    )
    made = await pools.json("set", "demo", "池", "--threshold", "2GB")
    assert (made["cards_to_stop"], made["saved"], made["old_threshold_kb"]) == (0, True, None)
    assert (made["pool"]["threshold_kb"], made["pool"]["used_kb"]) == (2 * 1024**2, 600)
    assert "停机线高于容量" in await pools("set", "demo", "池", "-q", "1GB")
    await pools("rm", "demo", "池", code=1)
    assert "流量池 池 中仍有 2 张卡" in pools.errors


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("set", "demo", "池"), 2, "给出要设定的内容"),
        (("set", "demo", "池", "-t", "1GB"), 1, "新建须用 --capacity"),
        (("set", "demo", "池", "-q", "100"), 2, "须为带单位的流量"),
        (("set", "demo", "池", "-q", "0GB"), 2, "须不小于 1KB"),
        (("set", "demo", "池", "-q", "1GB", "-t", "1MB", "--no-threshold"), 2, "二者选一"),
        (("set", "demo", " ", "-q", "1GB"), 2, "流量池 的值无效"),
        (("set", "nobody", "池", "-q", "1GB"), 1, "账号 nobody 不存在"),
        (("rm", "demo", "池"), 1, "账号 demo 没有流量池 池"),
        (("ls", "nobody"), 1, "账号 nobody 不存在"),
    ],
)
async def test_what_is_refused_is_told_and_not_written(
    pool: Pool, pools: Console, words: tuple[str, ...], code: int, said: str
) -> None:
    await add_account(pool, "demo")
    await pools(*words, code=code)
    assert said in pools.errors
    assert await pool.fetchval("SELECT count(*) FROM data_pool") == 0
