"""The storage client: put, get, stream, look for and delete objects by key."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from junhong_cmp.storage.errors import (
    ObjectMissingError,
    StorageDeniedError,
    StorageKeyError,
    StorageUnavailableError,
)
from junhong_cmp.storage.faults import storage_fault
from junhong_cmp.storage.keys import check_key
from junhong_cmp.storage.location import open_store

if TYPE_CHECKING:  # it has no such name at run time
    from obstore import GetOptions

T = TypeVar("T")

STREAM_CHUNK_BYTES: Final = 64 * 1024
_SPAN_BYTES: Final = 1024**2
_NO_BUCKET: Final = "NoSuchBucket"
"""The code of an S3 service; the client knows but one kind of absence."""


def open_storage(url: str, *, timeout: timedelta = timedelta(seconds=30)) -> "Storage":
    """Open the storage of ``url`` (``file:///folder``, ``s3://bucket/prefix``, ``memory://``).

    A local folder is made when missing; nothing else is touched until the first call.

    Raises:
        StorageUrlError: the URL is malformed or of an unsupported kind.
        StorageUnavailableError: a local folder can't be made.

    """
    store, root = open_store(url, timeout=timeout)
    return Storage(store, url=url, root=root)


class Storage:
    """A storage keeps objects by key; every key is checked before it is used.

    All methods raise StorageKeyError for a bad key, ObjectMissingError where an object is needed
    and absent, StorageDeniedError and StorageFullError where an operator must act, and
    StorageUnavailableError for everything that may pass.
    """

    def __init__(self, store: ObjectStore, *, url: str, root: Path | None) -> None:
        self._store = store
        self._base = url.partition("?")[0].rstrip("/")
        self._root = root

    async def put(self, key: str, data: bytes | Path) -> None:
        """Store ``data``, or the content of the file it names, replacing what was there, atomically."""
        await self._checked(key)
        await _translated(obstore.put_async(self._store, key, data))
        if self._root is not None:
            try:
                await asyncio.to_thread((self._root / key).chmod, 0o600)
            except OSError as error:
                raise storage_fault(error) from error

    async def get(self, key: str) -> bytes:
        """Return the whole object; for small ones, use :meth:`stream` otherwise."""
        await self._checked(key)
        result = await _translated(obstore.get_async(self._store, key))
        return bytes(await _translated(result.bytes_async()))

    async def stream(self, key: str, *, chunk_bytes: int = STREAM_CHUNK_BYTES) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces of about ``chunk_bytes``, a mebibyte or so of it in memory at a time.

        The caller may take as long over them as it likes.
        """
        await self._checked(key)
        parts = _pieces_of if self._root is not None else _spans_of
        async with aclosing(parts(self._store, key, chunk_bytes)) as found:
            async for part in found:
                for start in range(0, len(part), chunk_bytes):
                    yield part[start : start + chunk_bytes]

    async def exists(self, key: str) -> bool:
        """Return whether there is an object under ``key``."""
        await self._checked(key)
        try:
            await _translated(obstore.head_async(self._store, key))
        except ObjectMissingError:
            return False
        return True

    async def delete(self, key: str) -> None:
        """Delete the object; one that is not there is as good as deleted."""
        await self._checked(key)
        try:
            await _translated(obstore.delete_async(self._store, key))
        except ObjectMissingError:
            return

    def locate(self, key: str) -> str:
        """Return where a person finds the object: a path for a local folder, a URL otherwise."""
        check_key(key)
        return str(self._root / key) if self._root is not None else f"{self._base}/{key}"

    async def _checked(self, key: str) -> None:
        check_key(key)
        if self._root is not None:
            await asyncio.to_thread(_check_place, self._root / key, self._root)


def _check_place(path: Path, root: Path) -> None:
    """See that an object may be at ``path``, or come there."""
    if not root.is_dir():  # it was there when the storage was opened
        raise StorageUnavailableError(f"本地存储目录不存在：{root}，可能没有挂载")
    if path.is_symlink() or not path.parent.resolve().is_relative_to(root):
        raise StorageKeyError("对象键无效：路径经符号链接离开了存储目录")
    if path.exists() and not path.is_file():
        raise StorageKeyError("对象键无效：该处是目录、管道或设备，不是对象")


async def _pieces_of(store: ObjectStore, key: str, least: int) -> AsyncGenerator[bytes, None]:
    result = await _translated(obstore.get_async(store, key))
    pieces = result.stream(min_chunk_size=least)
    while True:
        try:
            yield bytes(await _translated(anext(pieces)))
        except StopAsyncIteration:
            return


async def _spans_of(store: ObjectStore, key: str, least: int) -> AsyncGenerator[bytes, None]:
    """Yield an object span by span, each taken at once: a service ends an answer that is taken too slowly.

    It says so if the object was replaced on the way.
    """
    result = await _translated(obstore.get_async(store, key))
    size, version = result.meta["size"], result.meta["e_tag"]
    position = 0
    while position < size:
        if position > 0:
            options: GetOptions = {"range": (position, min(position + _SPAN_BYTES, size))}
            if version is not None:
                options["if_match"] = version
            result = await _translated(obstore.get_async(store, key, options=options))
        span = await _take(result.stream(min_chunk_size=least), _SPAN_BYTES)
        position += len(span)
        yield span


async def _take(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """Return what the pieces begin with, about so many bytes of it."""
    taken = bytearray()
    while len(taken) < most:
        try:
            taken += await _translated(anext(pieces))
        except StopAsyncIteration:
            break
    return bytes(taken)


async def _translated(call: Awaitable[T]) -> T:
    try:
        return await call
    except FileNotFoundError as error:
        if _NO_BUCKET in str(error):
            raise StorageDeniedError("存储桶不存在") from error
        raise ObjectMissingError("对象不存在") from error
    except (BaseError, OSError) as error:
        raise storage_fault(error) from error
