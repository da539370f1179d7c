"""One request and its answer over a kept connection: what an HTTP client does between pool and parser.

The pool, name resolution, TLS and the parser are aiohttp's. Its session is not used: most of what that does
for a request (cookies, redirects, proxies, authentication, bodies of many kinds, a task to write each) would
be switched off here, and yet takes longer than all that is needed.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from junhong_cmp.gateway.body_reader import read_body
from junhong_cmp.gateway.errors import BadResponse, Transient

_ALWAYS: Final = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "junhong-cmp"}
_FIRST_FINAL: Final = 200
_SWITCHING_PROTOCOLS: Final = 101


class StaleConnectionError(aiohttp.ClientConnectionError):
    """A kept connection held an answer that nobody had asked for; it is closed, and nothing was sent."""


class Request(NamedTuple):
    """A request that may be written as it is."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes = b""


class HttpAnswer(NamedTuple):
    """A complete answer; ``retry_after`` and ``content_type`` are its headers as sent."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class Exchanges:
    """Exchanges write requests over connections of the pool, which get them back with the answer read."""

    def __init__(self, connector: aiohttp.BaseConnector, timeout: aiohttp.ClientTimeout) -> None:
        self._connector = connector
        self._timeout = timeout
        self._places: dict[tuple[str, str | None], aiohttp.ClientRequest] = {}

    async def run(self, request: Request) -> HttpAnswer:
        """Return the answer.

        Raises:
            StaleConnectionError: nothing was sent, and another connection may do.
            GatewayError: no connection in time, or what came is no answer.
            ClientError, OSError: of the connection, or of making it.
            ValueError: a line end is hidden in the request's address or headers; nothing was sent.

        """
        data = _bytes_of(request)
        connection = await self._connect(request.url)
        try:
            answer = await self._talk(connection, data)
        except BaseException:
            connection.close()  # not released: what is left unread must not be read by the next caller
            raise
        connection.release()
        return answer

    async def _connect(self, url: URL) -> aiohttp.connector.Connection:
        place = (url.scheme, url.host_port_subcomponent)
        target = self._places.get(place)
        if target is None:  # the connector knows hosts by requests to them; one serves for all
            target = aiohttp.ClientRequest("GET", url.origin(), loop=asyncio.get_running_loop())
            self._places[place] = target
        try:
            return await self._connector.connect(target, [], self._timeout)
        except aiohttp.ClientError:  # first: some of them are TimeoutErrors too
            raise
        except TimeoutError as error:
            raise Transient("连接网关超时", maybe_executed=False) from error

    async def _talk(self, connection: aiohttp.connector.Connection, data: bytes) -> HttpAnswer:
        protocol = connection.protocol
        if protocol is None:
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=False,  # read_body inflates within the limit
            read_timeout=self._timeout.sock_read,
        )
        if len(protocol):  # else that would be taken for the answer to this request, and so for ever
            raise StaleConnectionError
        _write(protocol.transport, data)
        protocol.start_timeout()
        try:
            head, content = await protocol.read()
            while head.code < _FIRST_FINAL and head.code != _SWITCHING_PROTOCOLS:
                head, content = await protocol.read()
        except HttpProcessingError:
            raise BadResponse("网关响应无效：不是合法的 HTTP 应答") from None  # its text is a stranger's
        headers = head.headers
        body = await read_body(content, headers.get("Content-Encoding", "identity"))
        content_type = headers.get("Content-Type", "application/octet-stream")
        return HttpAnswer(
            head.code, content_type.partition(";")[0].strip().lower(), headers.get("Retry-After"), body
        )


def _write(transport: asyncio.Transport | None, data: bytes) -> None:
    """Have the bytes sent, or raise as for a connection that is lost."""
    if transport is None or transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    try:
        transport.write(data)
    except RuntimeError as error:  # how uvloop says that the connection was reset a moment ago
        raise aiohttp.ServerDisconnectedError from error


def _bytes_of(request: Request) -> bytes:
    """Return a request as it is sent."""
    method, url, headers, body = request
    fields = {"Host": url.host_port_subcomponent or "", **_ALWAYS, **headers}
    if method == "POST":
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    text = "\r\n".join(lines)
    ends = len(lines) - 1
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise ValueError("a line end within a header")
    return text.encode() + b"\r\n\r\n" + body
