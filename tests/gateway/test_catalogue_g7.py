"""G7: answers without end cost neither memory nor time."""

import asyncio
import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta

import psutil
import pytest
from tests.gateway.clients import ACCOUNT, CARD, gateway_for
from tests.gateway.scripted_server import Exchange, scripted_server

from junhong_cmp.gateway.errors import BadResponse, Transient
from junhong_cmp.gateway.transport import GatewayTimeouts
from junhong_cmp.gateway.tuning import GatewayTuning

MIB = 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
GIGABYTE = 1024 * MIB
QUICK = GatewayTuning(timeouts=GatewayTimeouts(total=timedelta(seconds=3)))
"""What brings nothing at all, such as the last stream, is cut off by the total time alone."""


def plain() -> Iterator[bytes]:
    """A gigabyte of blanks, its length told at the beginning."""
    yield HEAD + b"Content-Length: %d\r\n\r\n" % GIGABYTE
    for _ in range(GIGABYTE // MIB):
        yield b" " * MIB


def chunked() -> Iterator[bytes]:
    """Blanks without end and without a length."""
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"100000\r\n" + b" " * MIB + b"\r\n"


def bomb() -> Iterator[bytes]:
    """A gigabyte of zeros in about a megabyte of gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    yield HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(GIGABYTE // MIB // 16):
        packed = packer.compress(bytes(16 * MIB)) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield b"%x\r\n" % len(packed) + packed + b"\r\n"


def bomb_in_one_piece() -> Iterator[bytes]:
    """The same, smaller, told at once."""
    packed = gzip.compress(bytes(256 * MIB), 9)
    yield HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed


def headers() -> Iterator[bytes]:
    """Header after header."""
    yield HEAD
    while True:
        yield b"X-More: and more\r\n" * 1000


def one_header() -> Iterator[bytes]:
    """One header without end."""
    yield HEAD + b"X-Long: "
    while True:
        yield b"x" * MIB


def trailers() -> Iterator[bytes]:
    """A body that ends and is followed by trailers without end."""
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    while True:
        yield b"X-More: and more\r\n" * 1000


def chunk_extension() -> Iterator[bytes]:
    """The length of a chunk, explained without end."""
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;"
    while True:
        yield b"x" * MIB


@pytest.mark.parametrize(
    "stream", [plain, chunked, bomb, bomb_in_one_piece, headers, one_header, trailers, chunk_extension]
)
async def test_an_answer_without_end_is_cut_off(stream: Callable[[], Iterator[bytes]]) -> None:
    async def pour(exchange: Exchange) -> None:
        for piece in stream():
            await exchange.send(piece)
            await asyncio.sleep(0)  # small pieces never fill the socket: let the other side read

    process = psutil.Process(os.getpid())
    async with scripted_server(pour) as server, gateway_for(server.url, QUICK) as gateway:
        before, began = process.memory_info().rss, time.monotonic()
        with pytest.raises((BadResponse, Transient)):
            await gateway.query_usage(ACCOUNT, CARD)
        took, grown = time.monotonic() - began, process.memory_info().rss - before
    assert took < 10
    assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB more"
