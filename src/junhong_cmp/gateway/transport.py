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

from junhong_cmp.gateway.endpoints import GuardedResolver
from junhong_cmp.gateway.errors import Transient
from junhong_cmp.gateway.exchanges import Exchanges, HttpAnswer, Request, StaleConnectionError
from junhong_cmp.gateway.failures import failure_of, is_dropped_connection, tells_address

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
        self._total_s = timeouts.total.total_seconds()
        self._connector: aiohttp.TCPConnector | None = None
        self._exchanges: Exchanges | None = None

    async def open(self) -> None:
        """Prepare the connection pool in the running loop; ``SSL_CERT_FILE`` may name a private authority."""
        self._connector = aiohttp.TCPConnector(
            limit=0,  # the bulkhead bounds each account; with a common bound a slow one starves the others
            ssl=ssl.create_default_context(),
            resolver=GuardedResolver(self._resolver),
            ttl_dns_cache=int(self._dns_ttl.total_seconds()),
            keepalive_timeout=_IDLE_CONNECTION_S,
        )
        timeout = aiohttp.ClientTimeout(
            total=None,  # bounded in post, over both attempts together
            connect=self._timeouts.connect.total_seconds(),
            sock_read=self._timeouts.read.total_seconds(),
        )
        self._exchanges = Exchanges(self._connector, timeout)

    async def close(self) -> None:
        """Close all connections."""
        connector, self._connector, self._exchanges = self._connector, None, None
        if connector is not None:
            await connector.close()

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

        def make() -> Request:
            return Request("POST", url, {**_JSON, **sign()}, body() if callable(body) else body)

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
            lambda: Request("GET", url, headers() if headers is not None else {}), resend=resend
        )

    async def _send(self, make: Callable[[], Request], *, resend: bool) -> HttpAnswer:
        """Make a request and send it, once more if it is harmless and the connection drops."""
        try:
            async with asyncio.timeout(self._total_s):
                try:
                    return await self._attempt(make)
                except (aiohttp.ClientError, OSError) as error:
                    if not resend or not is_dropped_connection(error):
                        raise
                return await self._attempt(make)
        except aiohttp.ClientError as error:  # first: its read timeouts are TimeoutErrors too
            raise failure_of(error) from (None if tells_address(error) else error)
        except TimeoutError as error:
            raise Transient("网关调用超过总时限") from error
        except OSError as error:
            raise Transient("与网关的连接中断") from error

    async def _attempt(self, make: Callable[[], Request]) -> HttpAnswer:
        """Send a request over the first kept connection that is fit for it, or a new one."""
        while True:
            exchanges = self._exchanges
            if exchanges is None:
                raise Transient("网关客户端尚未打开或已关闭", maybe_executed=False)
            try:
                return await exchanges.run(make())
            except StaleConnectionError:
                log.debug(
                    "网关连接上有未请求的应答，已弃用"
                )  # it is out of the pool: the next one is another
