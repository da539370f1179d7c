"""Which cards an export holds, streamed from one snapshot of the database."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

import asyncpg

from junhong_cmp.cards.account_store import find_account
from junhong_cmp.cards.model import CardStatus
from junhong_cmp.db.index_order import keep_index_order
from junhong_cmp.db.pool import Pool
from junhong_cmp.exports.columns import COLUMNS
from junhong_cmp.exports.errors import NothingFoundError

PAGE_ROWS: Final = 2000
_CARDS: Final = f"""
    SELECT {COLUMNS}
    FROM iot_card AS c JOIN carrier_account AS a ON a.id = c.account_id
    WHERE c.deleted_at IS NULL
        AND ($1::bigint IS NULL OR c.account_id = $1)
        AND ($2::text IS NULL OR c.status = $2)
    ORDER BY c.id
"""  # noqa: S608 - constant column list
# Who reads the file may be slow (a pipe into a pager); a forgotten one must not hold its snapshot for ever.
_PATIENCE: Final = "SET LOCAL idle_in_transaction_session_timeout = '10min'"


@dataclass(frozen=True, slots=True)
class CardSelection:
    """Live cards, of one account and in one status where those are given."""

    account_code: str | None = None
    status: CardStatus | None = None


async def stream_cards(
    pool: Pool, selection: CardSelection, *, page: int = PAGE_ROWS
) -> AsyncGenerator[list[asyncpg.Record], None]:
    """Yield the cards a page at a time, the oldest first, as they were when the export began.

    A cursor of the server holds the rest, so memory stays flat however many there are.

    Raises:
        NothingFoundError: there is no such account.

    """
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        account_id = None
        if selection.account_code is not None:
            account = await find_account(conn, selection.account_code)
            if account is None:
                raise NothingFoundError(
                    f"账号不存在：{selection.account_code}；junhong account ls 列出现有账号"
                )
            account_id = account.id
        await conn.execute(_PATIENCE)
        await keep_index_order(conn)
        cursor = await conn.cursor(_CARDS, account_id, selection.status)
        while rows := await cursor.fetch(page):
            yield rows
