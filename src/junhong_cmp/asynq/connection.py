"""Connections to Redis: one server, Sentinel or Cluster, chosen by the form of the URL."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

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
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.script_client import ScriptClient

DEFAULT_PORT: Final = 6379
DEFAULT_SENTINEL_PORT: Final = 26379
DEFAULT_TIMEOUT: Final = timedelta(seconds=5)
_SCHEMES: Final = ("redis", "rediss", "redis-socket", "unix", "redis-sentinel", "redis-cluster")


class RedisUrlError(AsynqError):
    """A Redis address cannot be understood; the message never shows its password."""


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


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """A parsed Redis URL. ``kind`` is ``single``, ``socket``, ``sentinel`` or ``cluster``."""

    kind: str
    nodes: tuple[tuple[str, int], ...] = ()
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = None
    sentinel_password: str | None = None
    master: str = ""
    tls: bool = False
    pool_size: int = 32
    socket_timeout: timedelta | None = DEFAULT_TIMEOUT
    client_name: str = "junhong"

    def __repr__(self) -> str:
        where = self.path or ",".join(f"{host}:{port}" for host, port in self.nodes)
        return f"RedisOptions({self.kind} {where} db={self.db})"

    @classmethod
    def parse(cls, url: str) -> "RedisOptions":
        """Parse ``url``.

        ``redis://[[user]:pw@]host[:port][/db]``, ``rediss://`` the same over TLS,
        ``redis-socket:///path?db=0`` (or ``unix://``),
        ``redis-sentinel://[:sentinel-pw@]h1[:p],h2[:p][/db]?master=name[&password=pw]``,
        ``redis-cluster://[user:pw@]h1:p,h2:p[?tls=true]``.

        Raises:
            RedisUrlError: the form is wrong; the text holds neither password nor host.

        """
        try:
            parts = urlsplit(url)
        except ValueError:
            raise RedisUrlError("Redis 地址无法解析") from None
        if parts.scheme not in _SCHEMES:
            raise RedisUrlError(f"Redis 地址的协议只能为 {'、'.join(_SCHEMES)}")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme in {"redis-socket", "unix"}:
            return _parse_socket(parts, query)
        return _parse_network(parts, query)


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


def open_blocking_redis(url: str, *, pool_size: int = 8, client_name: str = "junhong") -> RedisClient:
    """Return a client for commands that wait (``BLMOVE``, subscriptions): it has no read timeout.

    Raises:
        RedisUrlError: the URL is wrong.

    """
    options = RedisOptions.parse(url)
    return _open(replace(options, pool_size=pool_size, socket_timeout=None, client_name=client_name))


def _parse_socket(parts: SplitResult, query: dict[str, str]) -> RedisOptions:
    location = unquote(parts.path)
    if parts.hostname and not location:
        raise RedisUrlError("Redis 套接字地址缺少路径，应为 redis-socket:///路径?db=0")
    if not location.startswith("/"):
        raise RedisUrlError("Redis 套接字路径必须是绝对路径，应为 redis-socket:///路径?db=0")
    return RedisOptions(
        kind="socket",
        path=location,
        db=_database(query.get("db", "0")),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def _parse_network(parts: SplitResult, query: dict[str, str]) -> RedisOptions:
    credentials, _, hosts = parts.netloc.rpartition("@")
    username, _, password = credentials.partition(":")
    user, secret = unquote(username) or None, unquote(password) or None
    kind = {"redis-sentinel": "sentinel", "redis-cluster": "cluster"}.get(parts.scheme, "single")
    nodes = _nodes(hosts, DEFAULT_SENTINEL_PORT if kind == "sentinel" else DEFAULT_PORT)
    tls = parts.scheme == "rediss" or query.get("tls", "").lower() in {"1", "true", "yes"}
    if kind == "single" and len(nodes) != 1:
        raise RedisUrlError("redis:// 地址只能有一个主机；多个主机请用 redis-sentinel:// 或 redis-cluster://")
    database = parts.path.strip("/") or query.get("db", "0")
    if kind == "cluster" and database != "0":
        raise RedisUrlError("Redis 集群只有 0 号库")
    options = RedisOptions(
        kind=kind, nodes=nodes, db=_database(database), username=user, password=secret, tls=tls
    )
    if kind != "sentinel":
        return options
    if not query.get("master"):
        raise RedisUrlError("redis-sentinel:// 地址缺少 ?master=主节点名")
    return replace(
        options,
        username=None,
        password=query.get("password"),
        sentinel_password=secret,
        master=query["master"],
    )


def _nodes(hosts: str, default_port: int) -> tuple[tuple[str, int], ...]:
    nodes = []
    for item in hosts.split(","):
        try:
            part = urlsplit(f"//{item}")
            host, port = part.hostname, part.port
        except ValueError:
            raise RedisUrlError("Redis 地址的端口必须是 1–65535 的整数") from None
        if not host:
            raise RedisUrlError("Redis 地址缺少主机名")
        nodes.append((host, default_port if port is None else port))
    return tuple(nodes)


def _database(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise RedisUrlError("Redis 库号必须是非负整数")
    return int(text)


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
            "password": options.sentinel_password,
            "ssl": options.tls,
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
        ssl=options.tls,
        **settings,
    )
