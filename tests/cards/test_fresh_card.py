import asyncpg
import pytest
from tests.cards.inventory import add_account

from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.store import insert_cards, load_cards


@pytest.mark.parametrize("real_name_required", [True, False])
async def test_a_fresh_card_is_what_the_database_has(pool: asyncpg.Pool, *, real_name_required: bool) -> None:
    new = NewCard(
        iccid="89860400000000000012",
        msisdn="1064000000001",
        imsi="460000000000001",
        imei="860000000000001",
        batch_no="批次一",
        category="车联网",
        plan="月包",
        real_name_required=real_name_required,
    )
    account = await add_account(pool)
    async with pool.acquire() as conn, conn.transaction():
        cards = await insert_cards(conn, account.id, [new])
    loaded = await load_cards(pool, [card.id for card in cards])
    assert cards == list(loaded.values())
