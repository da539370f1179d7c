"""What polling needs to know of very many cards: a few columns in pages, no whole cards."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from asyncpg import Record

from junhong_cmp.cards.model import Card, CardStatus, PollProgress, PollTopic, RealNameStatus
from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS

RosterRow: TypeAlias = Record | tuple[Any, ...]
"""A card's id, the six columns of its profile, then for each topic in the order of ``PollTopic`` the last
poll (unix ms or None) and the failures in a row: see ``profile_of`` and ``progress_columns``."""

_PROGRESS_AT = 7

_POLL = (
    "floor(date_part('epoch', greatest({topic}_attempted_at, {topic}_succeeded_at)) * 1000)::bigint,"
    " {topic}_fail_count"
)
_ROWS = """
    SELECT id, account_id, category, status, real_name_required, real_name_status, orphan, {polls}
    FROM iot_card
    WHERE id {which} AND polling_enabled AND deleted_at IS NULL
"""
_POLLS = ", ".join(_POLL.format(topic=topic) for topic in PollTopic)
_PAGE = _ROWS.format(polls=_POLLS, which="> $1") + "ORDER BY id LIMIT $2"
_FIND = _ROWS.format(polls=_POLLS, which="= ANY ($1::bigint[])")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardProfile:
    """What decides how a live, enabled card is polled; many cards share one profile."""

    account_id: int
    category: str
    status: CardStatus
    real_name_required: bool
    real_name_status: RealNameStatus
    orphan: bool

    @property
    def polling_enabled(self) -> bool:
        """Only cards with polling enabled are in the roster."""
        return True


def profile_of(row: RosterRow) -> CardProfile:
    """Return the profile of a card; rows with equal ``row[1:7]`` have equal profiles."""
    account_id, category, status, required, real_name_status, orphan = row[1:_PROGRESS_AT]
    return CardProfile(
        account_id=account_id,
        category=category,
        status=CardStatus(status),
        real_name_required=required,
        real_name_status=RealNameStatus(real_name_status),
        orphan=orphan,
    )


def roster_row(card: Card) -> RosterRow:
    """Return the row a live card with polling enabled has in the roster."""
    return (
        card.id,
        card.account_id,
        card.category,
        card.status,
        card.real_name_required,
        card.real_name_status,
        card.orphan,
        _last_ms(card.carddata),
        card.carddata.fail_count,
        _last_ms(card.cardstatus),
        card.cardstatus.fail_count,
        _last_ms(card.realname),
        card.realname.fail_count,
    )


def _last_ms(progress: PollProgress) -> int | None:
    if progress.attempted_at is progress.succeeded_at is None:
        return None
    times: list[datetime] = [at for at in (progress.attempted_at, progress.succeeded_at) if at is not None]
    return int(max(times).timestamp() * 1000)


def progress_columns(topic: PollTopic) -> tuple[int, int]:
    """Return where a row has the time of the topic's last poll and its failures in a row."""
    first = _PROGRESS_AT + 2 * list(PollTopic).index(topic)
    return first, first + 1


async def stream_roster(
    pool: Pool, *, after_id: int = 0, page: int
) -> AsyncGenerator[Sequence[RosterRow], None]:
    """Yield pages of live cards with polling enabled, by ascending id; the next is read ahead.

    Each page is a short transaction on its own connection. Cards inserted meanwhile have higher ids and are
    met too, until the last page has been read; the last id of a page resumes a stream. Close the stream if
    it is left before its end.
    """
    ahead = asyncio.ensure_future(fetch_in_index_order(pool, _PAGE, after_id, page))
    try:
        while rows := await ahead:
            ahead = asyncio.ensure_future(fetch_in_index_order(pool, _PAGE, rows[-1][0], page))
            yield rows
    finally:
        ahead.cancel()
        with suppress(asyncio.CancelledError, *DATABASE_FAULTS):  # nobody wants this page any more
            await ahead


async def find_in_roster(conn: Conn | Pool, ids: Collection[int]) -> dict[int, RosterRow]:
    """Return the rows of the live, enabled cards among ``ids``."""
    return {row[0]: row for row in await conn.fetch(_FIND, list(ids))}
