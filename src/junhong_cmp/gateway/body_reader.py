"""Reading a response body without trusting its size."""

import zlib
from typing import Final

from aiohttp import StreamReader

from junhong_cmp.gateway.errors import BadResponse

MAX_BODY_BYTES: Final = 1024 * 1024
"""The most that is kept of an answer, counted after decompression."""

_ANY_ZLIB_HEADER: Final = zlib.MAX_WBITS | 32


async def read_body(content: StreamReader, encoding: str, *, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the whole decoded body; stop reading, and inflating, at the first byte above the limit.

    Raises:
        BadResponse: too long, in an unknown encoding, or broken inside its compression.

    """
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return await _read_plain(content, limit)
    if encoding in {"gzip", "deflate"}:
        return await _read_compressed(content, limit)
    raise BadResponse("网关响应无效：不支持的内容编码")


async def _read_plain(content: StreamReader, limit: int) -> bytes:
    body = bytearray()
    while chunk := await content.readany():
        body += chunk
        if len(body) > limit:
            raise _too_long(limit)
    return bytes(body)


async def _read_compressed(content: StreamReader, limit: int) -> bytes:
    inflater = zlib.decompressobj(_ANY_ZLIB_HEADER)
    body = bytearray()
    try:
        while chunk := await content.readany():
            body += inflater.decompress(chunk, limit + 1 - len(body))
            if len(body) > limit:
                raise _too_long(limit)
    except zlib.error as error:
        raise BadResponse("网关响应无效：压缩内容损坏") from error
    if not inflater.eof or inflater.unused_data:
        raise BadResponse("网关响应无效：压缩内容不完整或带有多余数据")
    return bytes(body)


def _too_long(limit: int) -> BadResponse:
    return BadResponse(f"网关响应无效：正文超过 {limit} 字节")
