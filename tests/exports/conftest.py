"""Cards to take out: two accounts, numbers and texts that spreadsheets spoil."""

import asyncpg
import pytest
from tests.imports.card_files import iccid

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import CarrierAccount, NewCard
from junhong_cmp.cards.store import insert_cards


@pytest.fixture
async def account(pool: asyncpg.Pool) -> CarrierAccount:
    async with pool.acquire() as conn:
        return await record_account(conn, NewAccount(code="cmcc-1", name="移动一号", carrier=Carrier.CMCC))


@pytest.fixture
async def cards(pool: asyncpg.Pool, account: CarrierAccount) -> list[int]:
    """Five cards of the account, the second with a plan that is a formula, and one of another account."""
    plans = ["月包", "=1+1", None, "  ＋2", "-3"]
    news = [
        NewCard(iccid=iccid(number), msisdn=f"1064{number:09d}", plan=plan)
        for number, plan in enumerate(plans)
    ]
    async with pool.acquire() as conn, conn.transaction():
        other = await record_account(conn, NewAccount(code="cucc-1", carrier=Carrier.CUCC))
        made = await insert_cards(conn, account.id, news)
        await insert_cards(conn, other.id, [NewCard(iccid=iccid(99))])
    return [card.id for card in made]
