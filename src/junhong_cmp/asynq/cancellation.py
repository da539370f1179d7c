"""Redis connections whose writes can be cancelled."""

import asyncio
from collections.abc import Iterable

from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.sentinel import SentinelManagedConnection, SentinelManagedSSLConnection
from redis.exceptions import TimeoutError as RedisTimeoutError


class _CancellableWrites(AbstractConnection):
    """Limits the time of a write with ``asyncio.timeout``.

    redis-py does it with ``asyncio.wait_for``, which before Python 3.12 drops a cancellation that arrives
    while the write is just done. The task then runs on, and whoever cancelled it waits for ever.
    """

    async def send_packed_command(
        self,
        command: bytes | str | Iterable[bytes],
        check_health: bool = True,  # noqa: FBT001, FBT002 - redis-py's
    ) -> None:
        limit, self.socket_timeout = self.socket_timeout, None  # without a limit redis-py writes plainly
        try:
            async with asyncio.timeout(limit):
                await super().send_packed_command(command, check_health)
        except TimeoutError:
            raise RedisTimeoutError("Timeout writing to socket") from None
        finally:
            self.socket_timeout = limit


class CancellableConnection(_CancellableWrites, Connection):
    """A TCP connection."""


class CancellableSSLConnection(_CancellableWrites, SSLConnection):
    """A TLS connection."""


class CancellableUnixConnection(_CancellableWrites, UnixDomainSocketConnection):
    """A connection over a unix socket."""


class CancellableSentinelConnection(_CancellableWrites, SentinelManagedConnection):
    """A TCP connection to the server Sentinel names."""


class CancellableSentinelSSLConnection(_CancellableWrites, SentinelManagedSSLConnection):
    """A TLS connection to the server Sentinel names."""
