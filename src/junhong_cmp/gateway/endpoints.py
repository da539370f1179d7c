"""Where a gateway may be: addresses that configuration or a database row name are not yet trusted."""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from junhong_cmp.gateway.errors import GatewayNotConfigured

_METADATA_ADDRESSES: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
"""Cloud metadata services outside the link-local ranges."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_BROADCAST: Final = ipaddress.ip_address("255.255.255.255")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddressError(OSError):
    """A host name led to an address that no gateway has."""


class EndpointPolicy:
    """An endpoint policy turns a base URL into one that may be called, or refuses it."""

    def __init__(self, *, allow_http: bool, allowed_hosts: Iterable[str]) -> None:
        self._schemes = frozenset({"https", "http"} if allow_http else {"https"})
        self._hosts = frozenset(host.lower() for host in allowed_hosts)

    def check(self, base_url: str) -> URL:
        """Return the base URL, without a trailing slash.

        Raises:
            GatewayNotConfigured: naming the rule it breaks; the text never holds the URL's own password.

        """
        try:
            url = URL(base_url)
            host = (url.host or "").lower()
            _ = url.port
        except ValueError as error:
            raise GatewayNotConfigured("网关地址不是合法的 URL") from error
        if url.scheme not in self._schemes:
            raise GatewayNotConfigured("网关地址必须使用 https（明文 http 需要显式允许）")
        if not host or host not in self._hosts:
            raise GatewayNotConfigured(f"网关主机不在允许名单内：{host[:100] or '空'}")
        if url.user is not None or url.password is not None or url.query_string or url.fragment:
            raise GatewayNotConfigured("网关地址不得包含用户名、密码、查询参数或片段")
        if is_forbidden_address(host):
            raise GatewayNotConfigured(f"网关地址指向不允许的网络地址：{host}")
        return url.with_path(url.path.rstrip("/"))


class GuardedResolver(AbstractResolver):
    """A guarded resolver answers only with addresses a gateway may have; they are what is connected to.

    Private addresses are allowed, since the operator lists the hosts; link-local and metadata ones never are.
    """

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a host; refuse it if any of its addresses is forbidden, as honest ones have none."""
        results = await self._inner.resolve(host, port, family)
        if any(is_forbidden_address(result["host"]) for result in results):
            raise ForbiddenAddressError(f"网关主机解析到不允许的网络地址：{host}")
        return results

    async def close(self) -> None:
        """Release the inner resolver."""
        await self._inner.close()


def is_forbidden_address(host: str) -> bool:
    """Tell whether a host is a literal address that is never a gateway's; a name is not an address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(address)
    return _is_forbidden(address) or (inner is not None and _is_forbidden(inner))


def _embedded(address: _Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 one stands for: mapped, 6to4, or through a NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour


def _is_forbidden(address: _Address) -> bool:
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == _BROADCAST
        or address in _METADATA_ADDRESSES
    )
