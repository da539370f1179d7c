"""S3, by a service that speaks it and by ones that fail: the contract of a storage over HTTP."""

import asyncio
import contextlib
import hashlib
import http.client
import logging
import os
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from moto.server import ThreadedMotoServer
from tests.waiting import wait_until

from junhong_cmp.storage.errors import ObjectMissingError, StorageDeniedError, StorageUnavailableError
from junhong_cmp.storage.store import Storage, open_storage

BUCKET = "cards"
DENIED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
CUT_OFF = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: x\r\n"
    b"Last-Modified: Mon, 02 Mar 2026 00:00:00 GMT\r\n\r\nICCID\n"
)


def storage_at(host: str, port: int, *, bucket: str = BUCKET) -> Storage:
    url = f"s3://{bucket}/some/prefix?endpoint=http://{host}:{port}&allow_http=true&region=us-east-1"
    return open_storage(url, timeout=timedelta(seconds=2))


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, int]]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with contextlib.closing(http.client.HTTPConnection(host, port)) as connection:
        connection.request("PUT", f"/{BUCKET}")
        connection.getresponse().read()
    yield host, port
    server.stop()


@pytest.fixture
def storage(service: tuple[str, int]) -> Storage:
    return storage_at(*service)


@contextlib.asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[Storage]:
    """A service that gives the same reply to everything and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield storage_at(host, port)


async def test_objects_come_back_as_they_were_put(storage: Storage) -> None:
    data = bytes(range(256)) * 8192
    await storage.put("a/big.csv", data)
    assert hashlib.sha256(await storage.get("a/big.csv")).digest() == hashlib.sha256(data).digest()
    pieces = [piece async for piece in storage.stream("a/big.csv", chunk_bytes=100_000)]
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 100_000
    assert storage.locate("a/big.csv") == "s3://cards/some/prefix/a/big.csv"


async def test_an_object_may_be_read_for_longer_than_an_answer_may_last(service: tuple[str, int]) -> None:
    """An import takes the pieces of its file as slowly as it writes their cards."""
    data = os.urandom(1024) * 12_000 + b"end"
    storage = storage_at(*service)  # an answer may last two seconds
    await storage.put("slow.csv", data)
    now, read = asyncio.get_running_loop().time, bytearray()
    until = now() + 2.5
    async for piece in storage.stream("slow.csv"):
        read += piece
        await wait_until(lambda: now() > until, description="an answer would have ended")
    assert bytes(read) == data


async def test_an_object_that_was_replaced_is_not_read_on(storage: Storage) -> None:
    await storage.put("x", b"1" * 2**21)
    pieces = storage.stream("x")
    await anext(pieces)
    await storage.put("x", b"2" * 2**21)
    with pytest.raises(StorageUnavailableError):
        _ = [piece async for piece in pieces]


async def test_a_service_need_not_tell_versions() -> None:
    data = os.urandom(1024) * 3000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the first answer is left before its end
            asked = re.search(
                rb"range: bytes=(\d+)-(\d+)", await reader.readuntil(b"\r\n\r\n"), re.IGNORECASE
            )
            first, last = (int(asked[1]), int(asked[2])) if asked else (0, len(data) - 1)
            head = f"Content-Length: {last - first + 1}\r\nContent-Range: bytes {first}-{last}/{len(data)}"
            when = "Last-Modified: Mon, 02 Mar 2026 00:00:00 GMT\r\nConnection: close"
            status = "206 Partial Content" if asked else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n{when}\r\n\r\n".encode() + data[first : last + 1])
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        storage = storage_at(*server.sockets[0].getsockname())
        assert b"".join([piece async for piece in storage.stream("x")]) == data


async def test_a_service_that_gives_nothing_is_not_asked_for_ever() -> None:
    head = "Content-Type: text/plain\r\nLast-Modified: Mon, 02 Mar 2026 00:00:00 GMT\r\nConnection: close"
    whole = bytes(3 * 2**20)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the first answer is left before its end
            if b"range: bytes=" in (await reader.readuntil(b"\r\n\r\n")).lower():
                span = f"Content-Length: 0\r\nContent-Range: bytes {2**20}-{2**21 - 1}/{len(whole)}"
                writer.write(f"HTTP/1.1 206 Partial Content\r\n{span}\r\n{head}\r\n\r\n".encode())
            else:
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(whole)}\r\n{head}\r\n\r\n".encode())
                writer.write(whole)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        storage = storage_at(*server.sockets[0].getsockname())
        with pytest.raises(StorageUnavailableError):
            _ = [piece async for piece in storage.stream("x")]


async def test_what_is_not_there_is_said_and_deleting_it_is_fine(storage: Storage) -> None:
    await storage.put("x", b"1")
    await storage.delete("x")
    await storage.delete("x")
    assert not await storage.exists("x")
    with pytest.raises(ObjectMissingError):
        await storage.get("x")


async def test_a_bucket_that_is_not_there_takes_and_gives_nothing(service: tuple[str, int]) -> None:
    absent = storage_at(*service, bucket="absent")
    for call in (absent.put("x", b"1"), absent.get("x"), anext(absent.stream("x"))):
        with pytest.raises(StorageDeniedError, match="存储桶不存在"):
            await call


async def test_a_refused_access_is_final_and_leaks_nothing() -> None:
    async with answering(DENIED) as storage:
        with pytest.raises(StorageDeniedError, match="没有读写权限，或凭据无效") as caught:
            await storage.get("x")
    assert "canary" not in str(caught.value)


async def test_a_body_cut_off_is_not_a_whole_object() -> None:
    async with answering(CUT_OFF) as storage:
        with pytest.raises(StorageUnavailableError):
            _ = [piece async for piece in storage.stream("x")]
