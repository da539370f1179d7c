"""One connection for all scripts of a client: sent as they come, answered in the same order."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import hiredis
from redis._parsers.base import BaseParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from junhong_cmp.asynq.cancellation import CancellableWrites

_NOT_YET: Final = object()


class ScriptLine(asyncio.Protocol):
    """A script line sends commands without waiting for earlier ones and hands their replies out in order.

    redis-py lends a connection to one command at a time, at a price of several times what the command costs.
    Here the commands of all tasks share one, which redis-py has opened: address, TLS, user and database are
    its concern. A caller that is cancelled leaves its place in the order, so nobody gets another's reply. A
    line is never repaired: after any fault all that wait are told, and the client opens a new one.
    """

    def __init__(self, connection: CancellableWrites, timeout_s: float | None) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=_NOT_YET
        )
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._transport = connection.hand_over(self)
        self.closed = False

    @property
    def idle(self) -> bool:
        """Whether no reply is outstanding."""
        return not self._waiting

    def send(self, args: Sequence[Any]) -> asyncio.Future[Any]:
        """Send a command and return its reply to come."""
        future = self._loop.create_future()
        if self._transport.is_closing():  # reset, and nobody told us yet: uvloop refuses to write there
            self.close(RedisConnectionError("Connection lost"))
        if self.closed:
            future.set_exception(RedisConnectionError("Connection lost"))
            return future
        packed = hiredis.pack_command(args if isinstance(args, tuple) else tuple(args))
        self._waiting.append((future, self._loop.time()))
        self._transport.write(packed)
        if self._timer is None and self._timeout_s is not None:
            self._timer = self._loop.call_later(self._timeout_s, self._check_time)
        return future

    def close(self, error: RedisError | None = None) -> None:
        """Close the connection; who still waits gets ``error``."""
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._transport.abort()
        self._connection.forget()
        error = error if error is not None else RedisConnectionError("Connection closed")
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)

    def data_received(self, data: bytes) -> None:
        """Hand out the replies that are complete."""
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOT_YET:
                self._answer(reply)
        except (RedisError, IndexError):  # not the protocol, or a reply nobody asked for
            self.close(RedisConnectionError("Protocol error"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all that wait."""
        self.close(RedisConnectionError(f"Connection lost: {exc or 'closed by server'}"))

    def _answer(self, reply: object) -> None:
        future, _ = self._waiting.popleft()
        failed = isinstance(reply, Exception)
        if not future.done():
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)
        if failed and isinstance(reply, ReadOnlyError | RedisConnectionError):
            self.close()  # a demoted primary, or one that is loading: ask anew who serves

    def _check_time(self) -> None:
        """Give up the line if its oldest command has waited too long; else look again when that could be."""
        self._timer = None
        if not self._waiting or self._timeout_s is None:
            return
        left = self._waiting[0][1] + self._timeout_s - self._loop.time()
        if left <= 0:
            self.close(RedisTimeoutError("Timeout reading from socket"))
        else:
            self._timer = self._loop.call_later(left, self._check_time)
