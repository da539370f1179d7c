"""What ``junhong import`` does with the services: connect, submit, wait, fetch the result file."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import typer
from redis.exceptions import RedisClusterException, RedisError

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cli.database import open_configured_pool
from junhong_cmp.cli.import_screen import ProgressView, report
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import is_outage
from junhong_cmp.db.schema import check_schema
from junhong_cmp.errors import DependencyUnavailableError, ExitCode, system_reason
from junhong_cmp.imports.encoding import FileFacts
from junhong_cmp.imports.errors import CardImportError
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.submit import inspect_file, submit_import
from junhong_cmp.storage.store import Storage, open_storage

_EXIT_REFUSED: Final = 1
_EXIT_INTERRUPTED: Final = 130
_LOOK_EVERY: Final = timedelta(milliseconds=200)
_HINT_AFTER: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What the command line asks for."""

    file: Path
    account_code: str
    wait: bool
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
        task = await run.submit(order.account_code, order.file, facts)
        try:
            if order.wait:
                with ProgressView(facts.lines, hidden=order.as_json) as view:
                    task = await run.wait(task, view.show)
        except asyncio.CancelledError:  # Ctrl-C; before this point it leaves nothing behind to tell of
            typer.echo("已停止等待；已提交的导入由 Worker 继续", err=True)
            return _EXIT_INTERRUPTED
        report(task, run.locate_result(task), as_json=order.as_json)
        if order.result_copy is not None and task.result_key is not None:
            await run.save_result(task, order.result_copy)
    return _EXIT_REFUSED if task.status is ImportStatus.FAILED else int(ExitCode.CLEAN)


class ImportRun:
    """An import run hands a file in and waits for workers to import it."""

    def __init__(self, pool: Pool, storage: Storage, client: Client) -> None:
        self._pool = pool
        self._storage = storage
        self._client = client

    async def submit(self, account_code: str, path: Path, facts: FileFacts) -> ImportTask:
        """Hand the file in; raises as :func:`submit_import`, with an unreachable service as code 69."""
        with explained("无法提交导入"):
            try:
                return await submit_import(
                    self._pool, self._storage, self._client, account_code=account_code, path=path, facts=facts
                )
            except (RedisError, RedisClusterException) as error:
                raise DependencyUnavailableError(
                    f"Redis 无法访问（{type(error).__name__}）：导入已登记，Redis 恢复后会自动入队"
                ) from error

    async def wait(self, task: ImportTask, show: Callable[[ImportTask], None]) -> ImportTask:
        """Return the import once it is final; an outage of the database is waited out."""
        loop = asyncio.get_running_loop()
        hint_at = loop.time() + _HINT_AFTER.total_seconds()
        while not task.status.is_final:
            show(task)
            if task.status is ImportStatus.PENDING and loop.time() >= hint_at:
                typer.echo(
                    "尚无 Worker 处理此导入：请确认有 Worker 在运行；可按 Ctrl-C 离开，导入不会丢失", err=True
                )
                hint_at = float("inf")
            await asyncio.sleep(_LOOK_EVERY.total_seconds())
            with contextlib.suppress(_Outage):
                task = await self._look_again(task)
        show(task)
        return task

    async def save_result(self, task: ImportTask, path: Path) -> None:
        """Write a copy of the result file to ``path``."""
        data = await self._storage.get(task.result_key or "")
        try:
            await asyncio.to_thread(path.write_bytes, data)
        except OSError as error:
            raise DependencyUnavailableError(f"结果文件无法写入 {path}：{system_reason(error)}") from error

    def locate_result(self, task: ImportTask) -> str | None:
        """Return where the result file is, if there is one."""
        return None if task.result_key is None else self._storage.locate(task.result_key)

    async def _look_again(self, task: ImportTask) -> ImportTask:
        try:
            current = await find_import(self._pool, task.id)
        except Exception as error:
            if is_outage(error):
                raise _Outage from error
            raise
        if current is None:
            raise DependencyUnavailableError(f"导入 {task.id} 已被另一次提交取代")
        return current


class _Outage(Exception):  # noqa: N818 - a passing state, waited out
    """The database can't be asked now."""


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
        pool = await open_configured_pool(settings.postgres, application_name="junhong-import")
    try:
        with explained("无法导入"):
            async with pool.acquire() as conn:
                await check_schema(conn)
        yield ImportRun(pool, storage, Client(redis))
    finally:
        await redis.aclose()
        await pool.close()
