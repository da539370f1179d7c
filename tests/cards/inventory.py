"""Accounts and cards for tests of the stores."""

from datetime import UTC, datetime, timedelta

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import Card, CarrierAccount, NewCard
from junhong_cmp.cards.store import insert_cards, load_cards
from junhong_cmp.db.pool import Pool

NOON = datetime(2026, 3, 10, 4, tzinfo=UTC)
"""Noon in Shanghai, away from the start of a cycle."""


def hours(count: float) -> datetime:
    """That many hours after noon."""
    return NOON + timedelta(hours=count)


async def add_account(pool: Pool, code: str = "cmcc-1", *, billing_day: int = 1) -> CarrierAccount:
    async with pool.acquire() as conn:
        new = NewAccount(code=code, carrier=Carrier.CMCC, billing_day=billing_day)
        return await record_account(conn, new)


async def add_cards(pool: Pool, account: CarrierAccount, count: int) -> list[Card]:
    rows = [NewCard(iccid=f"{89860000000000000000 + number * 10}") for number in range(count)]
    async with pool.acquire() as conn, conn.transaction():
        return await insert_cards(conn, account.id, rows)


async def reload(pool: Pool, card: Card) -> Card:
    return (await load_cards(pool, [card.id]))[card.id]
