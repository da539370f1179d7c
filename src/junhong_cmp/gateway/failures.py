"""HTTP client faults → what the caller does."""

import aiohttp

from junhong_cmp.gateway.endpoints import ForbiddenAddressError
from junhong_cmp.gateway.errors import (
    AuthRejected,
    GatewayError,
    GatewayNotConfigured,
    Transient,
)


def failure_of(error: aiohttp.ClientError) -> GatewayError:
    """Name a fault; only those from before the first byte was sent say ``maybe_executed=False``."""
    match error:
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            failure = _unconnected(error)
        case aiohttp.InvalidURL():
            failure = GatewayNotConfigured("网关地址不是可以调用的 URL")
        case aiohttp.SocketTimeoutError():
            failure = Transient("等待网关应答超时")
        case aiohttp.ClientPayloadError():
            failure = Transient("网关应答在传输中断开")
        case _:
            failure = Transient("与网关的连接中断")
    return failure


def _unconnected(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> GatewayError:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Transient("连接网关超时", maybe_executed=False)
        case aiohttp.ClientSSLError():
            return AuthRejected("与网关的 TLS 握手失败，请检查证书、主机名和协议版本")
        case aiohttp.ClientConnectorError(os_error=ForbiddenAddressError()):
            return GatewayNotConfigured("网关主机解析到不允许的网络地址")
        case aiohttp.ClientConnectorError(os_error=ConnectionResetError()):  # of a handshake: see asyncio
            return Transient("与网关的 TLS 握手被对方中断，请检查协议版本", maybe_executed=False)
        case aiohttp.ClientConnectorDNSError():
            return Transient("网关主机名解析失败", maybe_executed=False)
        case _:
            return Transient("无法连接网关", maybe_executed=False)


def is_dropped_connection(error: Exception) -> bool:
    """Tell whether an existing connection broke, as pooled ones do when the other side closed them."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


def tells_address(error: aiohttp.ClientError) -> bool:
    """Tell whether a fault's text has the whole URL: some carriers want passwords and signatures there."""
    return isinstance(error, aiohttp.InvalidURL)
