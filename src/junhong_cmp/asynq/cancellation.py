"""Redis connections whose writes can be cancelled, and whose socket can be handed over."""

import asyncio
from collections.abc import Iterable
from typing import Any

import hiredis
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.sentinel import SentinelManagedConnection, SentinelManagedSSLConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError


class CancellableWrites(AbstractConnection):
    """Limits the time of a write with ``asyncio.timeout``.

    redis-py does it with ``asyncio.wait_for``, which before Python 3.12 drops a cancellation that arrives
    while the write is just done. The task then runs on, and whoever cancelled it waits for ever.
    """

    async def send_packed_command(
        self,
        command: bytes | str | Iterable[bytes],
        check_health: bool = True,  # noqa: FBT001, FBT002 - redis-py's
    ) -> None:
        """Write ``command``, which is packed already."""
        limit, self.socket_timeout = self.socket_timeout, None  # without a limit redis-py writes plainly
        try:
            async with asyncio.timeout(limit):
                await super().send_packed_command(command, check_health)
        except TimeoutError:
            raise RedisTimeoutError("Timeout writing to socket") from None
        except RuntimeError as error:  # uvloop's word for a connection that was reset a moment ago
            raise RedisConnectionError("Connection lost") from error
        finally:
            self.socket_timeout = limit

    def pack_command(self, *args: Any) -> list[bytes]:
        """Return the bytes of a command; redis-py's own packing takes longer than all the rest of a send."""
        if " " in args[0]:  # redis-py itself writes some commands so: "CLUSTER SLOTS"
            args = (*args[0].split(), *args[1:])
        try:
            return [hiredis.pack_command(args)]
        except TypeError:  # a type hiredis does not know; redis-py knows more, or explains better
            return super().pack_command(*args)

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.WriteTransport:
        """Have ``protocol`` receive what comes over this connected connection, and return its transport.

        The connection must not be used any more; it only stands for its transport until :meth:`forget`.
        """
        if self._writer is None:
            raise RedisConnectionError("Connection lost")
        transport = self._writer.transport
        transport.set_protocol(protocol)
        return transport

    def forget(self) -> None:
        """Close the socket, at once and in silence."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


class CancellableConnection(CancellableWrites, Connection):
    """A TCP connection."""


class CancellableSSLConnection(CancellableWrites, SSLConnection):
    """A TLS connection."""


class CancellableUnixConnection(CancellableWrites, UnixDomainSocketConnection):
    """A connection over a unix socket."""


class CancellableSentinelConnection(CancellableWrites, SentinelManagedConnection):
    """A TCP connection to the server Sentinel names."""


class CancellableSentinelSSLConnection(CancellableWrites, SentinelManagedSSLConnection):
    """A TLS connection to the server Sentinel names."""
