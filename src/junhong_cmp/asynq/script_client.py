"""A Redis client that is quick with scripts."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from redis.asyncio import Redis

from junhong_cmp.asynq.cancellation import CancellableWrites
from junhong_cmp.asynq.reply_spin import ReplySpin
from junhong_cmp.asynq.script_line import ScriptLine


class ScriptClient(Redis):
    """A script client sends scripts over a line of its own and leaves all else to redis-py.

    Only ``EVALSHA`` goes over the line: a script never blocks, so none waits for another longer than the
    server is busy anyway. As everywhere here, nothing is ever sent a second time.
    """

    _line: ScriptLine | None = None
    _opening: asyncio.Lock | None = None
    _spin: ReplySpin | None = None

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command and return its reply."""
        if args[0] != "EVALSHA" or options:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call] # redis-py
        line = self._line
        if line is None or line.closed:
            line = await self._open_line()
        return await line.send(args)

    async def run_script_awake(self, *args: Any) -> Any:
        """Send one ``EVALSHA`` for a caller who waits for nothing else: a near reply is awaited awake."""
        line = self._line
        if line is None or line.closed:
            line = await self._open_line()
        if self._spin is None:
            self._spin = ReplySpin()
        alone = line.idle
        reply = line.send(args)
        if alone:
            await self._spin.watch(reply)
        return await reply

    async def run_scripts(self, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """Send many commands at once and return each's reply, or the exception it failed with."""
        line = self._line
        if line is None or line.closed:
            line = await self._open_line()
        replies: list[asyncio.Future[Any]] = []
        try:
            for command in commands:
                replies.append(line.send(command))
                await asyncio.sleep(0)  # what was written leaves now, and is worked on while the next is made
            return await asyncio.gather(*replies, return_exceptions=True)
        except BaseException:
            for reply in replies:
                reply.cancel()
            raise

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 - redis-py's
        """Close all connections."""
        if self._line is not None:
            self._line.close()
        await super().aclose(close_connection_pool)

    async def _open_line(self) -> ScriptLine:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._line is None or self._line.closed:  # else another caller was quicker
                connection: CancellableWrites = self.connection_pool.make_connection()  # type: ignore[no-untyped-call] # redis-py
                try:
                    await connection.connect()  # type: ignore[no-untyped-call] # redis-py
                    self._line = ScriptLine(connection, connection.socket_timeout)
                except BaseException:
                    connection.forget()
                    raise
            return self._line
