"""Connections to Redis: one server, Sentinel or Cluster, chosen by the form of the URL."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Protocol

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from junhong_cmp.asynq.cancellation import (
    CancellableConnection,
    CancellableSentinelConnection,
    CancellableSentinelSSLConnection,
    CancellableSSLConnection,
    CancellableUnixConnection,
)
from junhong_cmp.asynq.cluster_client import ClusterClient
from junhong_cmp.asynq.redis_url import DEFAULT_TIMEOUT, RedisOptions, RedisUrlError
from junhong_cmp.asynq.script_client import ScriptClient

__all__ = [
    "RedisClient",
    "RedisOptions",
    "RedisUrlError",
    "open_blocking_redis",
    "open_redis",
    "pool_size_of",
]

_UNLIMITED: Final = 2**31


class RedisClient(Protocol):
    """What this package needs of ``redis.asyncio``'s clients, single or cluster, with bytes as replies."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]:
        """Send one command and return its reply."""
        ...

    def pipeline(self, transaction: Any = ...) -> Any:
        """Return a pipeline; pass ``transaction=False``, the keys may live in several slots."""
        ...

    def pubsub(self, **kwargs: Any) -> Any:
        """Return a subscription on a connection of its own."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class _PrimaryClient(ScriptClient):
    """A client of the primary Sentinel names; closing it closes the connections to the Sentinels too."""

    manager: Sentinel | None = None

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 - redis-py's
        await super().aclose(close_connection_pool)
        if self.manager is not None:
            await self.manager.aclose()


def open_redis(
    url: str,
    *,
    pool_size: int = 32,
    socket_timeout: timedelta = DEFAULT_TIMEOUT,
    client_name: str = "junhong",
) -> RedisClient:
    """Return a client for ``url``; nothing is connected yet.

    The client never repeats a command by itself: a lost reply does not tell whether a script ran, and only
    the caller knows whether running it again is harmless.

    Raises:
        RedisUrlError: the URL is wrong.

    """
    options = RedisOptions.parse(url)
    return _open(
        replace(options, pool_size=pool_size, socket_timeout=socket_timeout, client_name=client_name)
    )


def open_blocking_redis(url: str, *, pool_size: int = 32, client_name: str = "junhong") -> RedisClient:
    """Return a client for commands that wait (``BLMOVE``, subscriptions): it has no read timeout.

    Raises:
        RedisUrlError: the URL is wrong.

    """
    options = RedisOptions.parse(url)
    return _open(replace(options, pool_size=pool_size, socket_timeout=None, client_name=client_name))


def pool_size_of(redis: RedisClient) -> int:
    """Return how many connections ``redis`` uses at once; a client made elsewhere has no limit we know."""
    if isinstance(redis, ScriptClient):
        return int(redis.connection_pool.max_connections)
    return redis.pool_size if isinstance(redis, ClusterClient) else _UNLIMITED


def _open(options: RedisOptions) -> RedisClient:
    openers: dict[str, Callable[[RedisOptions, dict[str, Any]], RedisClient]] = {
        "sentinel": _open_sentinel,
        "cluster": _open_cluster,
    }
    seconds = options.socket_timeout.total_seconds() if options.socket_timeout is not None else None
    settings: dict[str, Any] = {
        "username": options.username,
        "password": options.password,
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds or DEFAULT_TIMEOUT.total_seconds(),
        "client_name": options.client_name,
        # RESP2: one shape of replies for servers from 6.2 on, and no push messages between replies.
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        **(options.tls.settings() if options.tls is not None else {}),
    }
    return openers.get(options.kind, _open_single)(options, settings)


def _open_single(options: RedisOptions, settings: dict[str, Any]) -> RedisClient:
    connection_class: type[CancellableConnection | CancellableSSLConnection | CancellableUnixConnection]
    if options.kind == "socket":
        connection_class = CancellableUnixConnection
        settings["path"] = options.path
    else:
        connection_class = CancellableSSLConnection if options.tls else CancellableConnection
        (settings["host"], settings["port"]) = options.nodes[0]
    # A pool that waits for a free connection: a burst of callers must slow down, not fail.
    pool = BlockingConnectionPool(
        max_connections=options.pool_size,
        timeout=DEFAULT_TIMEOUT.total_seconds(),
        connection_class=connection_class,
        db=options.db,
        **settings,
    )
    return ScriptClient.from_pool(pool)


def _open_sentinel(options: RedisOptions, settings: dict[str, Any]) -> RedisClient:
    sentinel = Sentinel(  # type: ignore[no-untyped-call] # redis-py leaves its constructor untyped
        options.nodes,
        sentinel_kwargs={
            "username": options.sentinel_username,
            "password": options.sentinel_password,
            "ssl": options.tls is not None,
            **(options.tls.settings() if options.tls is not None else {}),
            "socket_timeout": DEFAULT_TIMEOUT.total_seconds(),
            "protocol": 2,
        },
    )
    client: _PrimaryClient = sentinel.master_for(
        options.master,
        redis_class=_PrimaryClient,
        db=options.db,
        connection_class=CancellableSentinelSSLConnection if options.tls else CancellableSentinelConnection,
        max_connections=options.pool_size,
        **settings,
    )
    client.manager = sentinel
    return client


def _open_cluster(options: RedisOptions, settings: dict[str, Any]) -> RedisClient:
    return ClusterClient(
        startup_nodes=[ClusterNode(host, port) for host, port in options.nodes],
        pool_size=options.pool_size,
        pool_wait=DEFAULT_TIMEOUT,
        ssl=options.tls is not None,
        **settings,
    )
