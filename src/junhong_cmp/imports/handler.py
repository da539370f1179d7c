"""The handler of ``iot_card:import``."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import asyncpg
import structlog
from redis.exceptions import RedisError

from junhong_cmp.asynq.errors import AsynqError, PutBack, SkipRetry
from junhong_cmp.asynq.outages import is_outage as is_redis_outage
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, in_transaction, is_outage
from junhong_cmp.imports.chunk import SupersededError
from junhong_cmp.imports.endings import add_result, finish_import
from junhong_cmp.imports.errors import FileRefusedError, ParserNotStartedError
from junhong_cmp.imports.importer import CHUNK_ROWS, CardAnnouncer, Importer
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.remarks import note_wait
from junhong_cmp.imports.store import find_import, start_import
from junhong_cmp.imports.tasks import decode_payload
from junhong_cmp.storage.errors import (
    ObjectMissingError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageKeyError,
    StorageUnavailableError,
)
from junhong_cmp.storage.store import Storage

log = structlog.stdlib.get_logger(__name__)

_NEVER: Final = (
    FileRefusedError,
    ObjectMissingError,
    StorageKeyError,
    StorageDeniedError,
    StorageFullError,
)
"""What running the import again would only run into again."""
_REASONS: Final[Mapping[type[Exception], str]] = {
    ObjectMissingError: "文件不存在：",
    StorageKeyError: "文件不存在：",
    StorageDeniedError: "文件无法读写：",
    StorageFullError: "结果文件无法保存，已导入的卡保留：",
}
_OUTAGES: Final[Mapping[type[Exception], str]] = {
    RedisError: "Redis ",
    asyncpg.PostgresError: "数据库",
    asyncpg.InterfaceError: "数据库",
}
_NO_STORAGE_DELAY: Final = timedelta(minutes=1)
_OUTAGE_DELAY: Final = timedelta(seconds=10)
_SUPERSEDED_DELAY: Final = timedelta(seconds=15)


class CardImportHandler:
    """A card import handler turns a queue's delivery into a run of an import.

    Delivery is at least once: a final import is left alone, an unfinished one goes on where it stopped,
    and of two simultaneous deliveries one yields.
    """

    def __init__(
        self,
        pool: Pool,
        storage: Storage | None,
        announcer: CardAnnouncer,
        *,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._pool = pool
        self._importer = (
            None if storage is None else Importer(pool, storage, announcer, chunk_rows=chunk_rows)
        )

    async def process_task(self, task: ProcessingTask) -> None:
        """Run the import that ``task`` names."""
        import_id = decode_payload(task.payload)
        if self._importer is None:
            raise await self._wait(import_id, _NO_STORAGE_DELAY, "对象存储未配置（JUNHONG_STORAGE_URL）")
        try:
            await self._run_to_end(self._importer, import_id, task.draining)
        except (StorageUnavailableError, ParserNotStartedError) as error:
            raise await self._wait(import_id, _OUTAGE_DELAY, str(error)) from error
        except Exception as error:  # told apart here, raised again in every case
            if is_outage(error) or is_redis_outage(error):
                raise await self._wait(import_id, _OUTAGE_DELAY, _outage_of(error)) from error
            if task.retried >= task.max_retry and not isinstance(error, AsynqError):
                await self._fail(self._importer, import_id, f"多次重试后仍失败：{type(error).__name__}")
            raise

    async def _run_to_end(self, importer: Importer, import_id: int, draining: asyncio.Event) -> None:
        try:
            await self._run(importer, import_id, draining)
        except _NEVER as error:
            reason = _REASONS.get(type(error), "") + str(error)
            await self._fail(importer, import_id, reason)
            raise SkipRetry(reason) from error

    async def _wait(self, import_id: int, delay: timedelta, reason: str) -> PutBack:
        """Let the import be seen to wait, and why, and return what puts it back for a while.

        While PostgreSQL is away nobody can be shown anything; who keeps its connections tells of that.
        """
        try:
            if await note_wait(self._pool, import_id, reason):
                log.warning("导入暂停，条件恢复后自动继续", import_id=import_id, reason=reason)
        except DATABASE_FAULTS as error:
            if not is_outage(error):
                raise
        return PutBack(delay, reason)

    async def _run(self, importer: Importer, import_id: int, draining: asyncio.Event) -> None:
        current = await in_transaction(self._pool, lambda conn: start_import(conn, import_id))
        if current is not None and current.status is ImportStatus.CANCELLED:
            await self._close_cancelled(importer, current)
            return
        if current is None or current.status.is_final:
            status = "不存在" if current is None else current.status
            log.info("导入已结束，忽略这次投递", import_id=import_id, status=status)
            return
        account = await self._account_of(current)
        if current.waits_for is None:  # else it has begun before, and was seen to wait
            log.info("开始导入", import_id=import_id, account=account.code, next_line=current.next_line)
        try:
            await importer.run(current, account, draining)
        except SupersededError as error:
            await self._stand_back(importer, import_id, error)
        else:
            await self._log_end(import_id)

    async def _account_of(self, task: ImportTask) -> CarrierAccount:
        async with self._pool.acquire() as conn:
            accounts = await list_accounts(conn)
        return next(account for account in accounts if account.id == task.account_id)

    async def _fail(self, importer: Importer, import_id: int, reason: str) -> None:
        """End an import that can't go on; what it has dealt with before is told by a result file."""
        current = await find_import(self._pool, import_id)
        result_key = None
        if current is not None and not current.status.is_final and current.total > 0:
            try:
                result_key = await importer.write_result(current)
            except StorageError as error:
                log.warning("结果文件无法保存", import_id=import_id, reason=str(error))
        if await finish_import(self._pool, import_id, result_key=result_key, error=reason):
            log.error("导入失败", import_id=import_id, reason=reason)

    async def _stand_back(self, importer: Importer, import_id: int, error: SupersededError) -> None:
        current = await find_import(self._pool, import_id)
        if current is None:
            return
        if current.status is ImportStatus.CANCELLED:
            await self._close_cancelled(importer, current)
        elif current.status is ImportStatus.RUNNING:
            log.info("同一导入正由另一个进程执行，稍后再看", import_id=import_id)
            raise PutBack(_SUPERSEDED_DELAY, str(error)) from error

    async def _close_cancelled(self, importer: Importer, cancelled: ImportTask) -> None:
        """Leave a result file of what had been dealt with when the import was cancelled."""
        if cancelled.result_key is None and cancelled.total > 0:
            await add_result(self._pool, cancelled.id, await importer.write_result(cancelled))
        log.info("导入已取消，已导入的卡保留", import_id=cancelled.id, imported=cancelled.imported)

    async def _log_end(self, import_id: int) -> None:
        done = await find_import(self._pool, import_id)
        if done is not None and done.status is ImportStatus.DONE:
            log.info(
                "导入完成",
                import_id=import_id,
                total=done.total,
                imported=done.imported,
                skipped=done.skipped,
                rejected=done.rejected,
                warned=done.warned,
            )


def _outage_of(error: Exception) -> str:
    named = next((name for kind, name in _OUTAGES.items() if isinstance(error, kind)), "依赖的服务")
    return f"{named}暂不可用：{type(error).__name__}"
