"""Cards in PostgreSQL: inserting, finding and removing them."""

from collections.abc import Collection, Sequence
from typing import Final

from junhong_cmp.cards.card_rows import card_from_row
from junhong_cmp.cards.fresh_card import fresh_card
from junhong_cmp.cards.iccid import is_same_card
from junhong_cmp.cards.model import Card, NewCard
from junhong_cmp.db.kept_plans import kept_plans
from junhong_cmp.db.pool import Conn, Pool

_INSERT_LOCK_KEY: Final = 0x6A68_6361  # "jhca"
_ROWS_A_STATEMENT: Final = 50
"""Half a millisecond of PostgreSQL's time. More would save little, and keep others from its processor."""

_LOCK_INSERTS = "SELECT pg_advisory_xact_lock($1)"
# OFFSET 0 keeps the planner on the index by number: it would rather read all cards and hash them, for every
# chunk of an import, until there are many more of them than a chunk has rows. Or, not knowing how many cards
# a number has, for a hundred of them.
# The arrays are the fields of ``NewCard`` in their order.
_INSERT = """
    INSERT INTO iot_card (
        account_id, iccid, iccid19, msisdn, imsi, imei, batch_no, category, plan, real_name_required,
        real_name_status)
    SELECT $1, n.iccid, left(n.iccid, 19), n.msisdn, n.imsi, n.imei, n.batch_no, n.category, n.plan,
        n.real_name_required, CASE WHEN n.real_name_required THEN 'unknown' ELSE 'not_required' END
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::bool[])
        WITH ORDINALITY
        AS n (iccid, msisdn, imsi, imei, batch_no, category, plan, real_name_required, position)
    LEFT JOIN LATERAL (
        SELECT true AS known
        FROM (SELECT iccid, deleted_at FROM iot_card WHERE iccid19 = left(n.iccid, 19) OFFSET 0) AS c
        WHERE c.deleted_at IS NULL
            AND (c.iccid = n.iccid OR length(c.iccid) = 19 OR length(n.iccid) = 19)) AS met ON true
    WHERE met.known IS NULL
    ORDER BY n.position
    ON CONFLICT DO NOTHING
    RETURNING id, iccid
"""
_FIND = """
    SELECT c.* FROM unnest($1::text[]) AS n (iccid19)
        CROSS JOIN LATERAL (SELECT * FROM iot_card WHERE iccid19 = n.iccid19 OFFSET 0) AS c
    WHERE c.deleted_at IS NULL
    ORDER BY c.id
"""
_LOAD = "SELECT * FROM iot_card WHERE id = ANY ($1::bigint[]) AND deleted_at IS NULL"
_COUNT = """
    SELECT count(*) FROM iot_card
    WHERE deleted_at IS NULL AND ($1::bigint IS NULL OR account_id = $1)
"""
_DELETE = """
    UPDATE iot_card SET deleted_at = now(), updated_at = now(), version = version + 1
    WHERE id = $1 AND deleted_at IS NULL
    RETURNING *
"""
_ENABLE = """
    UPDATE iot_card SET polling_enabled = $2, updated_at = now(), version = version + 1
    WHERE id = $1 AND deleted_at IS NULL
    RETURNING *
"""


async def insert_cards(conn: Conn, account_id: int, rows: Sequence[NewCard]) -> list[Card]:
    """Insert the cards that are not there yet and return those, in the order of ``rows``.

    Call it inside a transaction: until that ends no other insert can slip in the other
    form (19 or 20 characters) of a number, which the unique index alone would not notice.
    """
    await conn.execute(_LOCK_INSERTS, _INSERT_LOCK_KEY)
    created: list[Card] = []
    left, rounds = list(rows), 0
    async with kept_plans(conn):
        while news := _first_of_each_card(left):
            inserted: list[Card] = []
            for start in range(0, len(news), _ROWS_A_STATEMENT):
                inserted += await _insert(conn, account_id, news[start : start + _ROWS_A_STATEMENT])
            left = _not_met(left, news, inserted) if len(news) < len(left) else []
            created += inserted
            rounds += 1
    return created if rounds <= 1 else _in_order(rows, created)


async def _insert(conn: Conn, account_id: int, news: Sequence[NewCard]) -> list[Card]:
    inserted = await conn.fetch(_INSERT, account_id, *zip(*news, strict=True))
    ids = {row["iccid"]: row["id"] for row in inserted}
    return [fresh_card(ids[new.iccid], account_id, new) for new in news if new.iccid in ids]


async def find_by_iccids(conn: Conn, iccids: Collection[str]) -> dict[str, Card]:
    """Return the live card of each number that has one, keyed by the number as given.

    A number of 19 characters and one of 20 that begins with it are one card; two of 20 are
    one card only when equal. An equal number is preferred, then the oldest card.
    """
    rows = await conn.fetch(_FIND, list({iccid[:19] for iccid in iccids}))
    cards: dict[str, list[Card]] = {}
    for row in rows:
        cards.setdefault(row["iccid19"], []).append(card_from_row(row))
    found: dict[str, Card] = {}
    for iccid in iccids:
        same = [card for card in cards.get(iccid[:19], ()) if is_same_card(card.iccid, iccid)]
        if same:
            found[iccid] = next((card for card in same if card.iccid == iccid), same[0])
    return found


async def load_cards(conn: Conn | Pool, ids: Collection[int]) -> dict[int, Card]:
    """Return the live cards among ``ids``; a deleted card is simply not there."""
    return {row["id"]: card_from_row(row) for row in await conn.fetch(_LOAD, list(ids))}


async def count_cards(conn: Conn | Pool, account_id: int | None = None) -> int:
    """Count live cards, of one account or of all."""
    return int(await conn.fetchval(_COUNT, account_id))


async def delete_card(conn: Conn, card_id: int) -> Card | None:
    """Mark a card as deleted and return it, or None when it wasn't live; its number is free again."""
    row = await conn.fetchrow(_DELETE, card_id)
    return None if row is None else card_from_row(row)


async def set_polling_enabled(conn: Conn, card_id: int, *, enabled: bool) -> Card | None:
    """Switch a card's polling and return the card as it is now, or None when it isn't live."""
    row = await conn.fetchrow(_ENABLE, card_id, enabled)
    return None if row is None else card_from_row(row)


def _first_of_each_card(rows: Sequence[NewCard]) -> list[NewCard]:
    if len({row.iccid[:19] for row in rows}) == len(rows):  # as it nearly always is
        return list(rows)
    kept: dict[str, list[NewCard]] = {}
    firsts: list[NewCard] = []
    for row in rows:
        same = kept.setdefault(row.iccid19, [])
        if not any(is_same_card(row.iccid, other.iccid) for other in same):
            same.append(row)
            firsts.append(row)
    return firsts


def _not_met(rows: Sequence[NewCard], tried: Sequence[NewCard], inserted: Sequence[Card]) -> list[NewCard]:
    """Return the rows that neither were tried nor are a card that was inserted.

    A number of 19 characters stands for those of 20 behind it that begin with it. If it is a card that was
    there already, they need not be that card.
    """
    met = {row.iccid for row in tried}
    cards: dict[str, list[str]] = {}
    for card in inserted:
        cards.setdefault(card.iccid19, []).append(card.iccid)
    return [
        row
        for row in rows
        if row.iccid not in met
        and not any(is_same_card(row.iccid, iccid) for iccid in cards.get(row.iccid19, ()))
    ]


def _in_order(rows: Sequence[NewCard], cards: Sequence[Card]) -> list[Card]:
    by_number = {card.iccid: card for card in cards}
    return [by_number[number] for number in dict.fromkeys(row.iccid for row in rows) if number in by_number]
