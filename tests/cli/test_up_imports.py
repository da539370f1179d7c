"""Several card files watched as one."""

from dataclasses import replace

from tests.imports.card_files import make_import

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cli.up_imports import DemoImports, ImportCounts
from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.imports.store import find_import

PENDING = make_import(file_name="a.csv", file_lines=10)
DONE = replace(
    PENDING, id=2, file_name="b.csv", status=ImportStatus.DONE, total=9, imported=6, skipped=2, rejected=1
)


def test_counts_are_those_of_all_files() -> None:
    imports = DemoImports([replace(PENDING, total=3, imported=3), DONE], rows=21)
    assert imports.counts == ImportCounts(rows=21, total=12, imported=9, skipped=2, rejected=1)
    assert imports.files == "a.csv、b.csv"


def test_they_are_done_when_each_is() -> None:
    assert not DemoImports([PENDING, DONE], rows=1).done
    assert DemoImports([DONE, DONE], rows=1).done
    assert DemoImports([PENDING, DONE], rows=1).failed is None


def test_one_that_will_never_be_done_is_told() -> None:
    for status in (ImportStatus.FAILED, ImportStatus.CANCELLED):
        failed = replace(PENDING, status=status)
        imports = DemoImports([DONE, failed], rows=1)
        assert imports.failed == failed
        assert not imports.done


async def test_progress_is_read_until_the_end(pool: Pool) -> None:
    async with pool.acquire() as conn:
        account = await record_account(conn, NewAccount(code="a", carrier=Carrier.CMCC))
    number = await pool.fetchval(
        "INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes)"
        " VALUES ($1, 'a.csv', 'k', repeat('a', 64), 1) RETURNING id",
        account.id,
    )
    task = await find_import(pool, number)
    assert task is not None
    imports = DemoImports([task], rows=1)
    await pool.execute("UPDATE import_task SET status = 'done', total = 4, imported = 4")
    await imports.refresh(pool)
    assert imports.done
    assert imports.counts.imported == 4
    await pool.execute("DELETE FROM import_task")
    await imports.refresh(pool)
    assert imports.counts.imported == 4
