"""What ``junhong import`` does with the services: connect, submit, wait, fetch the result file."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from redis.exceptions import RedisClusterException, RedisError

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cli.import_desk import exit_code, open_database, save_result
from junhong_cmp.cli.import_screen import ProgressView, report
from junhong_cmp.cli.import_watch import watch
from junhong_cmp.cli.inspection import moment
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool
from junhong_cmp.errors import DependencyUnavailableError
from junhong_cmp.imports.encoding import FileFacts
from junhong_cmp.imports.errors import CardImportError
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.submit import FileChoice, inspect_file, submit_import
from junhong_cmp.storage.store import Storage, open_storage

_EXIT_REFUSED: Final = 1
_EXIT_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What the command line asks for."""

    file: Path
    account_code: str
    sheet: str
    watch: bool | None
    result_copy: Path | None
    as_json: bool


def run_import(settings: Settings, order: ImportOrder) -> int:
    """Carry the order out and return the exit code: 1 for a file or account that is refused."""
    try:
        facts = inspect_file(order.file)
        return asyncio.run(_carry_out(settings, order, facts))
    except CardImportError as error:
        typer.echo(f"错误：{error}", err=True)
        return _EXIT_REFUSED


async def _carry_out(settings: Settings, order: ImportOrder, facts: FileFacts) -> int:
    async with open_import_run(settings) as run:
        task = await run.submit(order, facts)
        if task.status.is_final:
            when = moment(task.finished_at)
            typer.echo(f"此文件已于 {when} 为该账号导入过，不再重复导入；以下是当时的结果", err=True)
        try:
            if order.watch is not False:
                lines_too = order.watch is True
                with ProgressView(task.file_lines, hidden=order.as_json, lines_too=lines_too) as view:
                    task = await watch(run.pool, task, view.show)
        except asyncio.CancelledError:  # Ctrl-C; before this point it leaves nothing behind to tell of
            typer.echo("已停止等待；已提交的导入由 Worker 继续", err=True)
            return _EXIT_INTERRUPTED
        report(task, run.storage, as_json=order.as_json)
        if order.result_copy is not None:
            await save_result(run.storage, task, order.result_copy)
    return exit_code(task)


class ImportRun:
    """An import run hands a file in."""

    def __init__(self, pool: Pool, storage: Storage, client: Client) -> None:
        self.pool = pool
        self.storage = storage
        self._client = client

    async def submit(self, order: ImportOrder, facts: FileFacts) -> ImportTask:
        """Hand the file in; raises as :func:`submit_import`, with an unreachable service as code 69."""
        with explained("无法提交导入"):
            try:
                return await submit_import(
                    self.pool,
                    self.storage,
                    self._client,
                    account_code=order.account_code,
                    path=order.file,
                    choice=FileChoice(facts=facts, sheet=order.sheet),
                )
            except (RedisError, RedisClusterException) as error:
                raise DependencyUnavailableError(
                    f"Redis 无法访问（{type(error).__name__}）：导入已登记，Redis 恢复后会自动入队"
                ) from error


@asynccontextmanager
async def open_import_run(settings: Settings) -> AsyncGenerator[ImportRun, None]:
    """Connect to what an import needs, and close it again.

    Raises:
        DependencyUnavailableError: PostgreSQL or the storage can't be reached.
        SchemaOutdatedError: the database must be migrated first.

    """
    url = settings.storage.url
    storage = open_storage(url.get_secret_value() if url is not None else "")
    with explained("无法导入"):
        redis = open_redis(settings.redis.url.get_secret_value(), pool_size=2, client_name="junhong-import")
    try:
        async with open_database(settings, "无法导入") as pool:
            yield ImportRun(pool, storage, Client(redis))
    finally:
        await redis.aclose()
