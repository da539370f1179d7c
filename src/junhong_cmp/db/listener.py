"""PostgreSQL notifications, over a connection of their own."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

import asyncpg
import structlog

from junhong_cmp.db.retrying import DATABASE_FAULTS, is_outage

log = structlog.stdlib.get_logger(__name__)

NOTHING_KNOWN: Final = ""
"""The payload that stands for: connected just now, anything may have been missed before."""

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class Listener:
    """A listener hears notifications and reconnects for as long as it takes.

    ``callback(channel, payload)`` runs in the event loop and must be quick. It is also called
    with an empty payload for each channel after every (re)connection.
    """

    def __init__(
        self,
        dsn: str,
        channels: Collection[str],
        callback: Callable[[str, str], None],
        *,
        check_interval: timedelta = timedelta(seconds=30),
    ) -> None:
        self._dsn = dsn
        self._channels = tuple(channels)
        self._callback = callback
        self._check_interval_s = check_interval.total_seconds()
        self._task: asyncio.Task[None] | None = None
        self._is_away = False

    async def start(self) -> None:
        """Begin to listen; the first connection is made in the background."""
        self._task = asyncio.create_task(self._run(), name="db:listener")

    async def stop(self) -> None:
        """Stop listening and close the connection."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                await self._listen()
                pause = _FIRST_PAUSE_S
                self._is_away = True
                log.warning("数据库通知连接中断，稍后重连", channels=self._channels)
            except DATABASE_FAULTS as error:
                if not is_outage(error):
                    log.exception("数据库通知连接出错，稍后重连", channels=self._channels)
                elif not self._is_away:  # said once an outage
                    log.warning("数据库通知连接失败，稍后重连", error=type(error).__name__)
                self._is_away = True
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    async def _listen(self) -> None:
        """Listen until the connection is lost; raise when it could not be made at all."""
        conn = await asyncpg.connect(
            self._dsn, timeout=10, server_settings={"application_name": "junhong-listener"}
        )
        lost = asyncio.Event()
        conn.add_termination_listener(lambda _conn: lost.set())
        try:
            for channel in self._channels:
                await conn.add_listener(channel, self._hear)
            if self._is_away:
                self._is_away = False
                log.info("数据库通知连接已恢复", channels=self._channels)
            for channel in self._channels:
                self._callback(channel, NOTHING_KNOWN)
            while not await _happens(lost, within_s=self._check_interval_s):
                # A link that died in silence shows only when something is asked over it.
                await conn.execute("SELECT 1", timeout=10)
        except DATABASE_FAULTS:
            if not conn.is_closed():
                raise
        finally:
            with contextlib.suppress(*DATABASE_FAULTS):
                await conn.close(timeout=2)

    def _hear(self, _conn: object, _pid: int, channel: str, payload: object) -> None:
        self._callback(channel, str(payload))


async def _happens(event: asyncio.Event, *, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
