"""Where the lease is kept: on a thread and a connection of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.leadership.keeper import LeaseKeeper
from junhong_cmp.leadership.lease_store import LeaseStore

_CUT_OFF_S: Final = 0.2


class KeeperThread:
    """A keeper thread runs a lease keeper, so that a blocked event loop does not lose the lease.

    The thread is a daemon: nothing in it can keep the process from ending.
    """

    def __init__(
        self,
        keeper: LeaseKeeper,
        open_redis: Callable[[], RedisClient],
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._keeper = keeper
        self._open_redis = open_redis
        self._on_death = on_death
        self._home = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def start(self) -> None:
        """Begin."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, args=(self._loop,), name="leader-lease", daemon=True).start()

    def call(self, action: Callable[[], None]) -> None:
        """Have the keeper's own loop do something; before its start and after its end nothing happens."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # its loop has been closed
                self._loop.call_soon_threadsafe(action)

    async def wait_ended(self, patience_s: float) -> bool:
        """Wait for the keeper's end; cut it off after ``patience_s``. Tell whether it ended by itself."""
        for part_s in (patience_s, _CUT_OFF_S):
            try:
                async with asyncio.timeout(part_s):
                    await self._ended.wait()
            except TimeoutError:
                self.call(self._cut_off)
            else:
                return part_s == patience_s
        return False

    def _cut_off(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._keep())
        except asyncio.CancelledError:
            pass  # cut off: its caller knows
        except Exception as error:  # noqa: BLE001 - handed over: without its keeper the process must not go on
            self._tell(partial(self._on_death, error))
        finally:
            self._tell(self._ended.set)

    async def _keep(self) -> None:
        self._task = asyncio.current_task()
        redis = self._open_redis()
        try:
            await self._keeper.run(LeaseStore(redis))
        finally:
            await redis.aclose()

    def _tell(self, action: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the process's loop is gone when the process ends
            self._home.call_soon_threadsafe(action)
