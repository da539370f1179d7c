"""A server that answers with the bytes a test wrote, however wrong they are."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

Respond = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request as it came, and the way to answer it; ``number`` counts from 0 over the whole server."""

    number: int
    head: bytes
    body: bytes
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()


@dataclass
class ScriptedServer:
    """A scripted server keeps what it was sent; the script answers, or does not."""

    respond: Respond
    exchanges: list[Exchange] = field(default_factory=list)
    url: str = ""
    connections: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.split(b"\r\n")
                        if line.lower().startswith(b"content-length:")
                    ),
                    0,
                )
                exchange = Exchange(len(self.exchanges), head, await reader.readexactly(length), writer)
                self.exchanges.append(exchange)
                await self.respond(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def close_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def scripted_server(
    respond: Respond, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(respond)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0, ssl=tls)
    scripted.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield scripted
    finally:
        server.close()
        scripted.close_connections()


def http_answer(
    body: bytes, *, status: str = "200 OK", content_type: str = "application/json", extra: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


def json_answer(value: object, *, status: str = "200 OK", extra: str = "") -> bytes:
    return http_answer(orjson.dumps(value), status=status, extra=extra)


def always(data: bytes) -> Respond:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(data)

    return respond
