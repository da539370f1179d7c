"""Every file in cases/ through the real import, against the result file or the refusal that belongs to it."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml
from tests.imports import workbooks
from tests.imports.card_files import Announcements, delivery, iccid

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.cards.model import CarrierAccount, NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.imports.store import NewImport, create_import, find_import
from junhong_cmp.storage.store import Storage

CASES = Path(__file__).parent / "cases"
FILES = sorted([*CASES.glob("*.yaml"), *(one for one in CASES.glob("*.csv") if ".result" not in one.name)])


def build(path: Path) -> tuple[str, str, bytes]:
    """Return the file name, the sheet asked for, and the bytes of a case."""
    if path.suffix == ".csv":
        return path.name, "", path.read_bytes()
    recipe: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    data = _content(recipe)
    return recipe.get("name", path.stem), recipe.get("sheet", ""), data[: recipe.get("cut", len(data))]


def _content(recipe: dict[str, Any]) -> bytes:
    makers: dict[str, Callable[[Any], bytes]] = {
        "text": lambda text: _text(text, recipe),
        "texts": lambda texts: b"".join(one["text"].encode(one["encoding"]) for one in texts),
        "hex": bytes.fromhex,
        "zip": workbooks.archive,
        "encrypted": lambda _: workbooks.encrypted(),
        "xls": lambda sheets: workbooks.xls(sheets, hidden=recipe.get("hidden", ())),
        "xlsx": lambda sheets: _xlsx(sheets, recipe),
    }
    (kind,) = makers.keys() & recipe.keys()
    return makers[kind](recipe[kind])


def _text(text: str, recipe: dict[str, Any]) -> bytes:
    encoded = text.replace("\n", recipe.get("line_end", "\n")).encode(recipe.get("encoding", "utf-8"))
    return bytes.fromhex(recipe.get("mark", "")) + encoded


def _xlsx(sheets: workbooks.Sheets, recipe: dict[str, Any]) -> bytes:
    blanks = recipe.get("blank_kilobytes", {})
    parts = recipe.get("parts", {}) | {name: f"<a>{' ' * size * 1024}</a>" for name, size in blanks.items()}
    return workbooks.xlsx(sheets, hidden=recipe.get("hidden", ()), parts=parts)


def expected(path: Path, kind: str) -> str | None:
    beside = path.with_name(f"{path.stem}.{kind}")
    return beside.read_text(encoding="utf-8") if beside.exists() else None


def test_every_expectation_has_its_case() -> None:
    stems = {path.stem for path in FILES}
    beside = {one for one in CASES.iterdir() if one not in FILES and one.name != "README.md"}
    assert {one.name.partition(".")[0] for one in beside} == stems
    readme = (CASES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in FILES if f"`{path.name}`" not in readme] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
async def test_a_case_ends_as_written_beside_it(
    path: Path,
    pool: asyncpg.Pool,
    storage: Storage,
    account: CarrierAccount,
    other_account: CarrierAccount,
    announcements: Announcements,
) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await insert_cards(conn, account.id, [NewCard(iccid=iccid(100))])
        await insert_cards(conn, other_account.id, [NewCard(iccid=iccid(200))])
    name, sheet, data = build(path)
    await storage.put("file", data)
    new = NewImport(
        account_id=account.id,
        file_name=name,
        file_key="file",
        file_sha256=hashlib.sha256(data).hexdigest(),
        file_bytes=len(data),
        sheet=sheet,
    )
    async with pool.acquire() as conn:
        task = await create_import(conn, new)
    handler = CardImportHandler(pool, storage, announcements)
    if (refusal := expected(path, "refused.txt")) is not None:
        with pytest.raises(SkipRetry):
            await handler.process_task(delivery(task.id))
    else:
        await handler.process_task(delivery(task.id))
    done = await find_import(pool, task.id)
    assert done is not None
    if refusal is not None:
        assert (done.status, done.error) == (ImportStatus.FAILED, refusal.rstrip("\n"))
        return
    assert done.result_key is not None
    result = (await storage.get(done.result_key)).decode("utf-8")
    assert result.replace("\r\n", "\n") == "\ufeff" + (expected(path, "result.csv") or "")
    assert "".join(f"{note}\n" for note in done.notes) == (expected(path, "notes.txt") or "")
    assert done.total == done.imported + done.skipped + done.rejected == result.count("\r\n") - 1
    assert len(announcements.card_ids) == done.imported
