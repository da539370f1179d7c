"""A CSV of gigabytes through the real import handler, from a storage that makes it up as it is read."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psutil
from obstore.store import MemoryStore

from import_bench.files import generated_csv
from import_bench.memory import MemoryWatch, resident_mb
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.account_store import find_account
from junhong_cmp.cards.model import Card
from junhong_cmp.db.pool import open_pool
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.store import NewImport, create_import, find_import
from junhong_cmp.imports.tasks import message_for
from junhong_cmp.storage.store import Storage

_MB: Final = 1_000_000
_KEY: Final = "generated.csv"


class GeneratedStorage(Storage):
    """A generated storage holds one file that is made anew whenever it is read; what is put is dropped."""

    def __init__(self, size: int) -> None:
        super().__init__(MemoryStore(), url="memory://", root=None)
        self._size = size
        self.put_bytes = 0

    async def stream(self, key: str, *, chunk_bytes: int = 0) -> AsyncGenerator[bytes, None]:  # noqa: ARG002 - one file
        """Yield the file; the pieces are of 64 KiB as they are."""
        for piece in generated_csv(self._size):
            await asyncio.sleep(0)
            yield piece

    async def put(self, key: str, data: bytes | Path) -> None:  # noqa: ARG002 - dropped
        """Count what is put."""
        self.put_bytes += len(data) if isinstance(data, bytes) else await asyncio.to_thread(_size_of, data)


def _size_of(path: Path) -> int:
    return path.stat().st_size


class _Nobody:
    """Nobody is told of new cards: this part measures the file, not the shards."""

    async def cards_created(self, cards: Sequence[Card]) -> None:
        """Take no notice."""


async def stream(dsn: str, megabytes: int) -> None:
    """Import a generated file and print one line of JSON."""
    size = megabytes * _MB
    storage = GeneratedStorage(size)
    digest, length = await asyncio.to_thread(_digest, size)
    pool = await open_pool(dsn, max_size=2)
    async with pool.acquire() as conn:
        account = await find_account(conn, "bench")
        if account is None:
            raise LookupError
        new = NewImport(
            account_id=account.id, file_name=_KEY, file_key=_KEY, file_sha256=digest, file_bytes=length
        )
        task = await create_import(conn, new)
    message, options = message_for(task.id)
    delivery = ProcessingTask(
        id=options.task_id or "",
        type=message.type,
        payload=message.payload,
        deadline=datetime.now(UTC) + timedelta(hours=1),
        draining=asyncio.Event(),
    )
    before = resident_mb(psutil.Process())
    began = time.perf_counter()
    async with MemoryWatch(os.getpid()) as memory:
        await CardImportHandler(pool, storage, _Nobody()).process_task(delivery)
    done = await find_import(pool, task.id)
    await pool.close()
    if done is None:
        raise LookupError
    figures = {
        "bytes": length,
        "rows": done.total,
        "imported": done.imported,
        "rejected": done.rejected,
        "seconds": round(time.perf_counter() - began, 1),
        "rss_before_mb": round(before, 1),
        "rss_mb": round(memory.peak_mb, 1),
        "result_mb": round(storage.put_bytes / _MB, 1),
    }
    print(json.dumps(figures))


def _digest(size: int) -> tuple[str, int]:
    digest, length = hashlib.sha256(), 0
    for piece in generated_csv(size):
        digest.update(piece)
        length += len(piece)
    return digest.hexdigest(), length
