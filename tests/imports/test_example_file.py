import asyncpg
from tests.imports.card_files import Announcements, PutFile, delivery

from junhong_cmp.embedded.demo_cards import operator_file
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.store import Storage


async def test_the_example_file_is_imported_as_its_writer_says(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    example = operator_file()
    task = await put_file(example.content)
    await CardImportHandler(pool, storage, announcements).process_task(delivery(task.id))
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.imported, done.skipped, done.rejected) == (example.cards, example.duplicates, example.broken)
    assert len(set(announcements.card_ids)) == example.cards
