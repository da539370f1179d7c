"""One HTTP call to a gateway: pooled connections, every wait bounded, nothing taken on trust."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver
from yarl import URL

from junhong_cmp.gateway.body_reader import read_body
from junhong_cmp.gateway.endpoints import GuardedResolver
from junhong_cmp.gateway.errors import BadResponse, Transient
from junhong_cmp.gateway.failures import failure_of, is_dropped_connection, tells_address
from junhong_cmp.gateway.kept_connections import CheckedRequest, StaleConnectionError

log = structlog.stdlib.get_logger(__name__)

_IDLE_CONNECTION_S: Final = 15.0  # well below the 60 to 75 s after which common servers close
_DNS_TTL: Final = timedelta(minutes=1)
_JSON: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class GatewayTimeouts:
    """``connect``: name, socket and TLS; ``read``: between two reads; ``total``: resending included."""

    connect: timedelta = timedelta(seconds=3)
    read: timedelta = timedelta(seconds=8)
    total: timedelta = timedelta(seconds=12)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer; ``retry_after`` and ``content_type`` are its headers as sent."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None = None


class HttpTransport:
    """A transport sends a request and returns its whole answer, over connections it keeps."""

    def __init__(
        self,
        timeouts: GatewayTimeouts,
        *,
        resolver: AbstractResolver | None = None,
        dns_ttl: timedelta = _DNS_TTL,
    ) -> None:
        self._timeouts = timeouts
        self._resolver = resolver
        self._dns_ttl = dns_ttl
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Prepare the connection pool in the running loop; ``SSL_CERT_FILE`` may name a private authority."""
        connector = aiohttp.TCPConnector(
            limit=0,  # the bulkhead bounds each account; with a common bound a slow one starves the others
            ssl=ssl.create_default_context(),
            resolver=GuardedResolver(self._resolver),
            ttl_dns_cache=int(self._dns_ttl.total_seconds()),
            keepalive_timeout=_IDLE_CONNECTION_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(
                total=None,  # bounded in post, over both attempts together
                connect=self._timeouts.connect.total_seconds(),
                sock_read=self._timeouts.read.total_seconds(),
            ),
            headers={"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "junhong-cmp"},
            request_class=CheckedRequest,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # read_body inflates within the limit
            trust_env=False,
        )
        # Else it sends a GET again by itself, harmless or not: some carriers stop cards by GET.
        self._session._retry_connection = False  # noqa: SLF001 - there is no public switch

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        url: URL,
        body: bytes | Callable[[], bytes],
        sign: Callable[[], Mapping[str, str]],
        *,
        resend: bool,
    ) -> HttpAnswer:
        """Post a JSON body.

        Args:
            url: must have passed the endpoint policy.
            body: sent as it is; or makes that of an attempt, for carriers whose calls are numbered in it.
            sign: makes the headers of an attempt; each attempt has a nonce of its own.
            resend: whether the call is harmless, so that it may be sent once more if the connection drops.

        Raises:
            GatewayError: no complete answer came; says what to do.

        """

        def make() -> _Request:
            return _Request("POST", url, {**_JSON, **sign()}, body() if callable(body) else body)

        return await self._send(make, resend=resend)

    async def get(
        self, url: URL, *, headers: Callable[[], Mapping[str, str]] | None = None, resend: bool = True
    ) -> HttpAnswer:
        """Get an answer to a question that is all in its address; see :meth:`post`.

        Args:
            url: must have passed the endpoint policy; sent as it is encoded.
            headers: makes the headers of an attempt.
            resend: whether the call is harmless.

        Raises:
            GatewayError: no complete answer came; says what to do.

        """
        return await self._send(
            lambda: _Request("GET", url, headers() if headers is not None else {}), resend=resend
        )

    async def _send(self, make: Callable[[], _Request], *, resend: bool) -> HttpAnswer:
        """Make a request and send it, once more if it is harmless and the connection drops."""
        try:
            async with asyncio.timeout(self._timeouts.total.total_seconds()):
                try:
                    return await self._attempt(make)
                except (aiohttp.ClientError, OSError) as error:
                    if not resend or not is_dropped_connection(error):
                        raise
                return await self._attempt(make)
        except aiohttp.ClientError as error:  # first: its connect and read timeouts are TimeoutErrors too
            raise failure_of(error) from (None if tells_address(error) else error)
        except TimeoutError as error:
            raise Transient("网关调用超过总时限") from error
        except OSError as error:
            raise Transient("与网关的连接中断") from error

    async def _attempt(self, make: Callable[[], _Request]) -> HttpAnswer:
        """Send a request over the first kept connection that is fit for it, or a new one."""
        while True:
            try:
                return await self._exchange(make())
            except StaleConnectionError:
                log.debug(
                    "网关连接上有未请求的应答，已弃用"
                )  # it is out of the pool: the next one is another

    async def _exchange(self, request: _Request) -> HttpAnswer:
        if self._session is None:
            raise Transient("网关客户端尚未打开或已关闭", maybe_executed=False)
        async with self._session.request(
            request.method, request.url, data=request.body, headers=request.headers, allow_redirects=False
        ) as response:
            try:
                content = await read_body(response)
            except BadResponse:
                response.close()  # not released: what is left unread must not be read by the next caller
                raise
            return HttpAnswer(
                status=response.status,
                content_type=response.content_type,
                retry_after=response.headers.get("Retry-After"),
                body=content,
            )
