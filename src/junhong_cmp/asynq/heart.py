"""Where heartbeats run: on a thread of their own, or, failing that, on the server's event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

import structlog

from junhong_cmp.asynq.broker import Broker, BrokerLimits
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.heartbeater import Heartbeater

log = structlog.stdlib.get_logger(__name__)

_CUT_OFF_S = 0.1


class Heart(Protocol):
    """Something that keeps a heartbeater going."""

    def start(self) -> None:
        """Begin to beat."""
        ...

    async def stop(self, patience_s: float) -> None:
        """Beat no more; return within ``patience_s``."""
        ...


class LoopHeart:
    """A loop heart beats on the server's own event loop; a handler that blocks the loop stops it."""

    def __init__(self, heartbeater: Heartbeater, broker: Broker) -> None:
        self._heartbeater = heartbeater
        self._broker = broker
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.create_task(self._heartbeater.run(self._broker, self._stopped))

    async def stop(self, patience_s: float) -> None:
        """Let the present beat end, remove the server's state, cut off what takes too long."""
        self._stopped.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=patience_s)
            await end_tasks([self._task], _CUT_OFF_S)


class ThreadHeart:
    """A thread heart beats on a thread with an event loop and a connection of its own.

    A handler that blocks the server's event loop then delays its neighbours, but
    does not lose their leases.
    """

    def __init__(
        self, heartbeater: Heartbeater, open_redis: Callable[[], RedisClient], lease: timedelta
    ) -> None:
        self._heartbeater = heartbeater
        self._open_redis = open_redis
        self._lease = lease
        self._server_loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped: asyncio.Event | None = None

    def start(self) -> None:
        """Begin to beat; the thread is a daemon, so that nothing can keep the process from ending."""
        threading.Thread(target=self._live, name="asynq-heartbeat", daemon=True).start()

    async def stop(self, patience_s: float) -> None:
        """Let the present beat end, remove the server's state, cut off what takes too long."""
        await asyncio.to_thread(self._ready.wait, patience_s)
        self._call(self._ask_to_stop)
        for part_s in (patience_s * 0.7, patience_s * 0.3):
            try:
                async with asyncio.timeout(part_s):
                    await self._ended.wait()
            except TimeoutError:
                self._call(self._cut_off)
            else:
                return

    def _call(self, action: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the thread's loop has closed: it has ended already
                self._loop.call_soon_threadsafe(action)

    def _ask_to_stop(self) -> None:
        if self._stopped is not None:
            self._stopped.set()

    def _cut_off(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _live(self) -> None:
        try:
            asyncio.run(self._beat())
        except asyncio.CancelledError:
            log.warning("心跳线程未能按时结束，已中止")
        finally:
            self._ready.set()
            with contextlib.suppress(RuntimeError):  # the server's loop may be gone when the process ends
                self._server_loop.call_soon_threadsafe(self._ended.set)

    async def _beat(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._stopped = asyncio.Event()
        self._ready.set()
        redis = self._open_redis()
        try:
            await self._heartbeater.run(Broker(redis, limits=BrokerLimits(lease=self._lease)), self._stopped)
        finally:
            await redis.aclose()
