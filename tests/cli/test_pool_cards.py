"""``junhong pool put`` and ``take`` as processes against a real PostgreSQL."""

from pathlib import Path

import pytest
from tests.cli.console import Console
from tests.cli.pooled_cards import use
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.pool_store import list_pool_use, record_pool
from junhong_cmp.db.pool import Pool

CARD = "89860000000000000001"


@pytest.fixture
def pools(redis_url: str, postgres_dsn: str) -> Console:
    console = Console("pool", redis_url, postgres_dsn)
    del console.env["JUNHONG_REDIS_URL"]  # not asked for
    return console


async def test_cards_go_in_over_and_out_and_the_totals_with_them(
    pool: Pool, pools: Console, tmp_path: Path
) -> None:
    account = await add_account(pool, "demo")
    cards = await add_cards(pool, account, 3)
    await use(pool, account, cards, 300)
    for name in ("一", "二"):
        await record_pool(pool, account.id, name, 10_000, None)
    file = tmp_path / "cards.txt"
    file.write_text("\n".join(card.iccid for card in cards[:2]), encoding="utf-8")

    async def totals() -> list[tuple[int, int]]:
        return [(each.cards, each.used_kb) for each in await list_pool_use(pool)]

    assert await pools("put", "demo", "一", "--file", str(file)) == "已放入流量池 一：2 张卡\n"
    assert await totals() == [(2, 600), (0, 0)]
    said = await pools("put", "demo", "二", *(card.iccid for card in cards))
    assert said == "已放入流量池 二：3 张卡（其中 2 张来自别的流量池）\n"
    assert await totals() == [(0, 0), (3, 900)]
    again = await pools.json("put", "demo", "二", cards[0].iccid)
    assert again == {"cards": 1, "moved": 0, "from_other_pools": 0}
    assert "另有 1 张已在池中" in await pools("put", "demo", "二", cards[0].iccid)
    assert await pools("take", "demo", "一", cards[0].iccid) == "已移出流量池 一：0 张卡，另有 1 张不在池中\n"
    assert await pools("take", "demo", "二", cards[0].iccid) == "已移出流量池 二：1 张卡\n"
    assert await totals() == [(0, 0), (2, 600)]
    assert await pools.json("take", "demo", "二", "--all") == {"cards": 2, "moved": 2}
    assert await totals() == [(0, 0), (0, 0)]


async def test_a_card_says_which_pool_it_is_in(pool: Pool, pools: Console, redis_url: str) -> None:
    account = await add_account(pool, "demo")
    (card,) = await add_cards(pool, account, 1)
    await record_pool(pool, account.id, "[共享]", 1000, None)
    await pools("put", "demo", "[共享]", card.iccid)
    show = Console("card", redis_url, pools.env["JUNHONG_POSTGRES_DSN"])
    assert "- / - / [共享]" in await show("show", card.iccid)
    assert (await show.json("show", card.iccid))["pool_name"] == "[共享]"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("put", "demo", "池"), 2, "二者选一"),
        (("take", "demo", "池", "--all", CARD), 2, "--all 不与卡号或 --file 同用"),
        (("put", "demo", "别", CARD), 1, "账号 demo 没有流量池 别"),
        (("put", "nobody", "池", CARD), 1, "账号 nobody 不存在"),
        (("put", "demo", "池", "8986"), 1, "不是有效的 ICCID：ICCID 应为 19 或 20 位"),
        (("put", "demo", "池", CARD, "89869999999999999999"), 1, "1 个卡号没有对应的卡"),
        (("put", "demo", "池", CARD, "89860000000000000050"), 1, "1 张卡不属于账号 demo"),
        (("put", "demo", "池", "-f", "absent"), 1, "文件无法读取：absent：不存在"),
    ],
)
async def test_what_is_refused_is_told_and_nothing_moves(
    pool: Pool, pools: Console, words: tuple[str, ...], code: int, said: str
) -> None:
    account = await add_account(pool, "demo")
    await add_cards(pool, account, 2)
    await add_cards(pool, await add_account(pool, "other"), 1, first=50)
    await record_pool(pool, account.id, "池", 1000, None)
    await pools(*words, code=code)
    assert said in pools.errors
    assert await pool.fetchval("SELECT count(*) FROM iot_card WHERE pool_id IS NOT NULL") == 0
