"""Cards that somebody else creates while a file with them is imported."""

import asyncio
from collections import Counter

import asyncpg
from tests.imports.card_files import Announcements, PutFile, card_file, delivery, iccid

from junhong_cmp.cards.model import CarrierAccount, NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.store import Storage

ROWS = 600


async def test_each_row_has_the_outcome_of_who_came_first(
    pool: asyncpg.Pool,
    storage: Storage,
    put_file: PutFile,
    account: CarrierAccount,
    other_account: CarrierAccount,
) -> None:
    """Two others insert the same numbers at once, one of them in the form of 19 characters."""
    announcements = Announcements()
    task = await put_file(card_file(range(ROWS)))
    inserted: Counter[int] = Counter()

    async def insert(owner: CarrierAccount, first: int, step: int, length: int) -> None:
        for number in range(first, ROWS, step):
            async with pool.acquire() as conn, conn.transaction():
                made = await insert_cards(conn, owner.id, [NewCard(iccid=iccid(number)[:length])])
            inserted[owner.id] += len(made)

    handler = CardImportHandler(pool, storage, announcements, chunk_rows=20)
    await asyncio.gather(
        handler.process_task(delivery(task.id)),
        insert(other_account, 300, 3, 19),
        insert(account, 301, 3, 20),
    )
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.total, done.imported + done.skipped + done.rejected) == (ROWS, ROWS)
    assert (done.skipped, done.rejected) == (inserted[account.id], inserted[other_account.id])
    live = await pool.fetchval("SELECT count(DISTINCT iccid19) FROM iot_card WHERE deleted_at IS NULL")
    assert live == await pool.fetchval("SELECT count(*) FROM iot_card") == ROWS
    owned = await pool.fetchval(
        "SELECT count(*) FROM import_row AS r JOIN iot_card AS c ON c.id = r.card_id"
        " WHERE r.status = 'imported' AND c.account_id = $1",
        account.id,
    )
    assert owned == done.imported == len(announcements.card_ids)
