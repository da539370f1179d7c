"""What is done with imports that were handed in before: watch, cancel, list."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
import typer

from junhong_cmp.cli.import_screen import ProgressView, print_imports, report, status_name, summary_of
from junhong_cmp.cli.import_watch import watch
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.db.schema import check_schema
from junhong_cmp.errors import DependencyUnavailableError, ExitCode, system_reason
from junhong_cmp.imports import endings
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.overview import list_recent
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.store import Storage, open_storage

_EXIT_REFUSED: Final = 1
_EXIT_INTERRUPTED: Final = 130


@asynccontextmanager
async def open_database(settings: Settings, action: str) -> AsyncGenerator[Pool, None]:
    """Connect to the database of imports, and close the connections again; ``action`` is for complaints.

    Raises:
        DependencyUnavailableError: PostgreSQL can't be reached.
        SchemaOutdatedError: the database must be migrated first.

    """
    with explained(action):
        pool = await open_pool(
            settings.postgres.dsn.get_secret_value(), max_size=2, application_name="junhong-import"
        )
    try:
        with explained(action):
            async with pool.acquire() as conn:
                await check_schema(conn)
        yield pool
    finally:
        await pool.close()


def exit_code(task: ImportTask) -> int:
    """Return the code a command ends with that has seen ``task`` to its end."""
    failed = task.status in {ImportStatus.FAILED, ImportStatus.CANCELLED}
    return _EXIT_REFUSED if failed else int(ExitCode.CLEAN)


def run_watch(settings: Settings, import_id: int, *, result_copy: Path | None, as_json: bool) -> int:
    """Show an import until it is final; return 1 if there is none or it failed or was cancelled."""
    return asyncio.run(_watch(settings, import_id, result_copy, as_json=as_json))


async def _watch(settings: Settings, import_id: int, result_copy: Path | None, *, as_json: bool) -> int:
    async with open_database(settings, "无法读取导入") as pool:
        task = await find_import(pool, import_id)
        if task is None:
            return _unknown(import_id)
        try:
            with ProgressView(task.file_lines, hidden=as_json, lines_too=True) as view:
                task = await watch(pool, task, view.show)
        except asyncio.CancelledError:
            typer.echo("已停止等待；导入由 Worker 继续", err=True)
            return _EXIT_INTERRUPTED
    url = settings.storage.url
    storage = None if url is None else open_storage(url.get_secret_value())
    report(task, storage, as_json=as_json)
    if storage is not None and result_copy is not None:
        await save_result(storage, task, result_copy)
    return exit_code(task)


async def save_result(storage: Storage, task: ImportTask, path: Path) -> None:
    """Write a copy of the import's result file to ``path``, if there is one.

    Raises:
        DependencyUnavailableError: it cannot be written there.

    """
    if task.result_key is None:
        return
    data = await storage.get(task.result_key)
    try:
        await asyncio.to_thread(path.write_bytes, data)
    except OSError as error:
        raise DependencyUnavailableError(f"结果文件无法写入 {path}：{system_reason(error)}") from error


def run_cancel(settings: Settings, import_id: int) -> int:
    """Cancel an import and say what stays; return 1 if there is nothing to cancel."""
    return asyncio.run(_cancel(settings, import_id))


async def _cancel(settings: Settings, import_id: int) -> int:
    async with open_database(settings, "无法取消导入") as pool:
        with explained("无法取消导入"):
            cancelled = await endings.cancel_import(pool, import_id)
            task = await find_import(pool, import_id)
    if task is None:
        return _unknown(import_id)
    if not cancelled:
        typer.echo(f"错误：导入 {import_id} 已结束（{status_name(task)}），无法取消", err=True)
        return _EXIT_REFUSED
    typer.echo(
        f"导入 {import_id} 已取消：处理到第 {max(task.next_line - 1, 0)} 行，"
        f"已导入的 {task.imported} 张卡保留，其余未处理"
    )
    return int(ExitCode.CLEAN)


def run_list(settings: Settings, limit: int, *, as_json: bool) -> None:
    """Print the latest imports."""
    imports = asyncio.run(_list(settings, limit))
    if as_json:
        typer.echo(orjson.dumps([summary_of(one) for one in imports], option=orjson.OPT_INDENT_2).decode())
    else:
        print_imports(imports)


async def _list(settings: Settings, limit: int) -> list[ImportTask]:
    async with open_database(settings, "无法读取导入") as pool:
        with explained("无法读取导入"):
            return await list_recent(pool, limit)


def _unknown(import_id: int) -> int:
    typer.echo(f"错误：没有导入 {import_id}；junhong import ls 列出最近的导入", err=True)
    return _EXIT_REFUSED
