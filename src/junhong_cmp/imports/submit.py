"""Handing a file in: checked, stored, recorded, enqueued."""

import asyncio
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.errors import TaskIdConflictError
from junhong_cmp.cards.account_store import find_account
from junhong_cmp.db.pool import Pool
from junhong_cmp.errors import system_reason
from junhong_cmp.imports.encoding import FileFacts, FileInspector, refuse_large
from junhong_cmp.imports.errors import AccountUnknownError, FileRefusedError
from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.store import NewImport, create_import
from junhong_cmp.imports.tasks import message_for
from junhong_cmp.storage.store import Storage

log = structlog.stdlib.get_logger(__name__)

_PIECE_BYTES: Final = 1024 * 1024
_FILE_NAME_CHARS: Final = 200
_SHEET_CHARS: Final = 255
"""Excel allows 31; other programs more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChoice:
    """What of a file to import, and what is known of it.

    ``facts`` spare a second look at a file that was inspected before; ``sheet`` names the sheet of a
    workbook, empty for the first that has cards.
    """

    facts: FileFacts | None = None
    sheet: str = ""


_AS_IT_IS: Final = FileChoice()


async def submit_import(
    pool: Pool,
    storage: Storage,
    client: Client,
    *,
    account_code: str,
    path: Path,
    choice: FileChoice = _AS_IT_IS,
) -> ImportTask:
    """Hand a local file in for import and return its job.

    The same file for the same account is one job: handing it in again returns the one there is, unless
    that failed or was cancelled. A crash between the record and the queue is healed by the re-drive.

    Raises:
        AccountUnknownError: no account has this code; nothing was stored.
        FileRefusedError: the file can't be read or can't be imported as it is; nothing was stored.
        StorageUnavailableError: the storage can't take the file now.
        redis.exceptions.RedisError: the queue can't be reached; the re-drive will enqueue the import.

    """
    if not choice.sheet.isprintable() or len(choice.sheet) > _SHEET_CHARS:
        raise FileRefusedError(f"工作表名称无效：{show(choice.sheet)}")
    async with pool.acquire() as conn:
        account = await find_account(conn, account_code)
    if account is None:
        raise AccountUnknownError(
            f"账号不存在：{show(account_code)}；junhong account ls 列出现有账号，junhong account add 新建"
        )
    facts = choice.facts if choice.facts is not None else await asyncio.to_thread(inspect_file, path)
    key = f"imports/files/{account.id}/{facts.sha256}"
    await storage.put(key, path)
    name = "".join(char if char.isprintable() else "_" for char in path.name)[:_FILE_NAME_CHARS]
    new = NewImport(
        account_id=account.id,
        file_name=name,
        file_key=key,
        file_sha256=facts.sha256,
        file_bytes=facts.size,
        file_lines=facts.lines or None,
        sheet=choice.sheet,
    )
    async with pool.acquire() as conn:
        task = await create_import(conn, new)
    if not task.status.is_final:
        await _enqueue(client, task.id)
    return task


def inspect_file(path: Path) -> FileFacts:
    """Read a local file once and return its facts.

    Raises:
        FileRefusedError: it can't be read, or can't be imported as it is.

    """
    limits = ImportLimits()
    inspector = FileInspector(limits)
    try:
        _refuse_unusable(path, limits)
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                inspector.feed(piece)
    except OSError as error:
        raise FileRefusedError(f"文件无法读取：{path}：{system_reason(error)}") from error
    return inspector.finish()


def _refuse_unusable(path: Path, limits: ImportLimits) -> None:
    """Refuse without a look inside what takes very long to read, or can be read only once."""
    found = path.stat()
    if stat.S_ISREG(found.st_mode):
        refuse_large(found.st_size, limits.file_bytes)
    elif not stat.S_ISDIR(found.st_mode):  # opening a folder says what it is
        raise FileRefusedError(f"文件无法读取：{path}：不是普通文件（管道或设备），请先保存为文件")


async def _enqueue(client: Client, import_id: int) -> None:
    try:
        await client.enqueue(*message_for(import_id))
    except TaskIdConflictError:
        log.info("导入任务已在队列中", import_id=import_id)
