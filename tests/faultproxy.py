"""A TCP proxy before a real server that loses what a test tells it to lose.

``pass``   bytes go through (the start)
``cut``    after a request with a pattern: the server carries it out, the reply is lost, the connection dies
``stall``  nothing goes through, connections stay open and new ones are accepted
``reset``  open connections die with a TCP reset; new ones pass
``refuse`` open connections die, new ones are closed at once
"""

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_CHUNK = 1 << 16
_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER of no time: closing sends a reset


class FaultProxy:
    """A fault proxy listens on a free port of its own; ``url`` is the server's URL through it."""

    def __init__(self, target_url: str) -> None:
        self._target = urlsplit(target_url)
        self._server: asyncio.Server | None = None
        self._pattern = b""
        self._cuts_left = 0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self._links: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self.cuts = 0
        """How many connections were cut after a request with the pattern."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        links = list(self._links)
        self.reset()
        await asyncio.gather(*links, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def cut_after(self, pattern: bytes, times: int = 1) -> None:
        """Cut the next ``times`` connections that ask something with ``pattern``, once it is answered."""
        self._pattern, self._cuts_left = pattern, times

    def stall(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        """Pass everything again."""
        self._refusing, self._cuts_left = False, 0
        self._flowing.set()

    def refuse(self) -> None:
        self._refusing = True
        self.reset()

    def reset(self) -> None:
        for task, writers in list(self._links.items()):
            for writer in writers:
                _abort(writer)
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links[link] = [writer]
        try:
            if not self._refusing:
                await self._join(link, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for open_writer in self._links.pop(link):
                open_writer.close()

    async def _join(
        self, link: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        up_reader, up_writer = await self._connect()
        self._links[link].append(up_writer)
        doomed = asyncio.Event()
        requests = asyncio.create_task(self._pump(reader, up_writer, doomed, watch=True))
        replies = asyncio.create_task(self._pump(up_reader, writer, doomed, watch=False))
        try:
            await asyncio.wait({requests, replies}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in (requests, replies):
                pump.cancel()
            await asyncio.gather(requests, replies, return_exceptions=True)
        if doomed.is_set():
            self.cuts += 1
            _abort(writer)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._target.hostname is None:
            return await asyncio.open_unix_connection(self._target.path)
        return await asyncio.open_connection(self._target.hostname, self._target.port)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        doomed: asyncio.Event,
        *,
        watch: bool,
    ) -> None:
        """Pass bytes on; a reply that comes once the link is doomed ends it instead."""
        seen = b""
        while data := await reader.read(_CHUNK):
            await self._flowing.wait()
            if not watch and doomed.is_set():
                return
            if watch and self._cuts_left > 0 and not doomed.is_set():  # one connection is cut but once
                seen = seen[-len(self._pattern) :] + data
                if self._pattern in seen:
                    self._cuts_left -= 1
                    doomed.set()
            writer.write(data)
            await writer.drain()


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
    writer.transport.abort()
