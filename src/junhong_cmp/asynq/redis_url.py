"""The address of a Redis: one server, a unix socket, Sentinel or Cluster, plain or over TLS."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Final, Self
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from junhong_cmp.asynq.errors import AsynqError

DEFAULT_PORT: Final = 6379
DEFAULT_SENTINEL_PORT: Final = 26379
DEFAULT_TIMEOUT: Final = timedelta(seconds=5)
_SCHEMES: Final = ("redis", "rediss", "redis-socket", "unix", "redis-sentinel", "redis-cluster")
_CHECKS: Final = ("required", "none")


class RedisUrlError(AsynqError):
    """A Redis address cannot be understood; the message never shows its password."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """TLS options name the files to trust and to show; by default the system's authorities are trusted.

    They are given in the URL under redis-py's names: ``ssl_ca_certs`` (file of the authorities to trust),
    ``ssl_certfile`` and ``ssl_keyfile`` (shown to servers that ask for a certificate), and
    ``ssl_cert_reqs=none``, which trusts whoever answers.
    """

    PARAMETERS: ClassVar = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verified: bool = True

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """Take the options out of a URL's parameters.

        Raises:
            RedisUrlError: they make no sense.

        """
        check = query.get("ssl_cert_reqs", "required")
        if check not in _CHECKS:
            raise RedisUrlError(f"ssl_cert_reqs 只能为 {'、'.join(_CHECKS)}")
        certificate, key = query.get("ssl_certfile"), query.get("ssl_keyfile")
        if key is not None and certificate is None:
            raise RedisUrlError("给出 ssl_keyfile 时必须同时给出 ssl_certfile")
        return cls(query.get("ssl_ca_certs"), certificate, key, check == "required")

    def settings(self) -> dict[str, Any]:
        """Return them as redis-py's connections take them."""
        return {
            "ssl_ca_certs": self.ca_file,
            "ssl_certfile": self.certificate_file,
            "ssl_keyfile": self.key_file,
            "ssl_cert_reqs": "required" if self.verified else "none",
            "ssl_check_hostname": self.verified,
        }


_PARAMETERS: Final = ("db", "tls", "master", "username", "password", *TlsOptions.PARAMETERS)


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """A parsed Redis URL. ``kind`` is ``single``, ``socket``, ``sentinel`` or ``cluster``."""

    kind: str
    nodes: tuple[tuple[str, int], ...] = ()
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    master: str = ""
    tls: TlsOptions | None = None
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
        ``redis-sentinel://[[user]:sentinel-pw@]h1[:p],h2[:p][/db]?master=name[&username=user&password=pw]``,
        ``redis-cluster://[user:pw@]h1:p,h2:p[?tls=true]``. What TLS trusts and shows, see
        :class:`TlsOptions`.

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
        if not query.keys() <= set(_PARAMETERS):  # not named: it may be the rest of an unescaped password
            raise RedisUrlError(f"Redis 地址的参数只能为 {'、'.join(_PARAMETERS)}；密码中的特殊字符须转义")
        if parts.scheme in {"redis-socket", "unix"}:
            return _parse_socket(parts, query)
        return _parse_network(parts, query)


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
    tls = TlsOptions.parse(query) if parts.scheme == "rediss" or _is_yes(query.get("tls", "")) else None
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
        username=query.get("username"),
        password=query.get("password"),
        sentinel_username=user,
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


def _is_yes(text: str) -> bool:
    return text.lower() in {"1", "true", "yes"}
