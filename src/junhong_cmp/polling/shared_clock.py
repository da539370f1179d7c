"""One time for all workers: that of Redis, whatever the machines they run on believe."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.polling import keys
from junhong_cmp.polling.background import cancel_and_wait

log = structlog.stdlib.get_logger(__name__)

_LOOK_EVERY: Final = timedelta(seconds=10)
_SLOWEST_LOOK_S: Final = 1.0
_AGREEING_S: Final = 1.0
_NOTABLE_SKEW_S: Final = 5.0


class SharedClock:
    """A shared clock carries the time Redis told last on by the machine's monotonic clock.

    Where the machine's own time agrees with it, within a second, that is carried on instead: how long an
    answer took blurs what Redis told by some milliseconds, and clocks kept in step are better than that.

    What one worker writes down is compared by the others (which reading is newer, how long an account
    rests) and with what carriers say (which readings and signatures are of now), so a machine whose clock
    is wrong would refuse good readings, or have everybody else's refused. Until Redis has told its time
    for the first time, and if it never does, the machine's own time holds.
    """

    def __init__(
        self, redis: RedisClient, *, own: Clock | None = None, look_every: timedelta = _LOOK_EVERY
    ) -> None:
        self._redis = redis
        self._own = own if own is not None else SystemClock()
        self._look_every_s = look_every.total_seconds()
        self._now = LuaScript.load(__package__ or "", "now")
        self._offset_s: float | None = None
        self._is_skewed = False
        self._looking: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        """Return the time all workers go by, aware, in UTC."""
        if self._offset_s is None:
            return self._own.now()
        return datetime.fromtimestamp(self._own.monotonic() + self._offset_s, UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic clock in seconds."""
        return self._own.monotonic()

    async def start(self) -> None:
        """Ask Redis once, then now and then for as long as the clock runs."""
        await self._look()
        self._looking = asyncio.create_task(self._run(), name="polling:clock")

    async def stop(self) -> None:
        """Ask no more; the clock goes on."""
        if self._looking is None:
            return
        task, self._looking = self._looking, None
        await cancel_and_wait(task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._look_every_s)
            await self._look()

    async def _look(self) -> None:
        began_s = self._own.monotonic()
        try:
            told_ms = int(await self._now.run(self._redis, (keys.generation(),)))
        except FAULTS as error:  # the monotonic clock carries on what is known
            log.debug("未能向 Redis 查询时间", error=type(error).__name__)
            return
        ended_s = self._own.monotonic()
        if ended_s - began_s > _SLOWEST_LOOK_S and self._offset_s is not None:
            return  # an answer so late says less than what is known
        told_s = told_ms / 1000 - (began_s + ended_s) / 2
        # The largest of some: a thread put aside between the two readings makes the difference smaller.
        own_s = max(self._own.now().timestamp() - self._own.monotonic() for _ in range(3))
        skew_s = own_s - told_s
        self._offset_s = own_s if abs(skew_s) <= _AGREEING_S else told_s
        self._tell(skew_s)

    def _tell(self, skew_s: float) -> None:
        """Say once that the machine's clock is wrong, and once that it is right again."""
        is_skewed = abs(skew_s) > _NOTABLE_SKEW_S
        if is_skewed and not self._is_skewed:
            log.warning("本机时钟与 Redis 相差过大，轮询按 Redis 的时间进行", skew_s=round(skew_s, 1))
        elif self._is_skewed and not is_skewed:
            log.info("本机时钟已与 Redis 一致")
        self._is_skewed = is_skewed
