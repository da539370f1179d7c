"""Claims held back after Redis lost data, until every poll it forgot has ended."""

from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.polling import keys
from junhong_cmp.polling.settings import PollingSettings

log = structlog.stdlib.get_logger(__name__)

_KEPT: Final = b"kept"
_BROKEN: Final = b"broken"
_POLLED_LATELY: Final = """
SELECT EXISTS (
    SELECT FROM poll_minute
    WHERE minute >= least($1::timestamptz, now()) - $2::interval - interval '1 minute')
"""


class ClaimHold:
    """A claim hold keeps a leader from claiming while polls may be under way that Redis knows nothing of.

    What keeps a card from being asked about twice at once are its claim and its slot, and a Redis that
    lost its data has neither. But a poll under way then ends within the lease its slot had, and none of
    those still in the task queue can start, for their claims are gone. So the leader that finds data
    missing waits for so long, by the monotonic clock, while cards are put back into their shards.
    A key, ``polling:continuity``, is there as long as Redis has forgotten nothing; it is written when
    the hold is over, so whoever leads before that holds a whole time himself. An empty Redis under a
    PostgreSQL that counted no polls lately, as at a first start, holds up nothing.
    """

    def __init__(
        self, pool: Pool, redis: RedisClient, settings: PollingSettings, *, clock: Clock | None = None
    ) -> None:
        self._pool = pool
        self._redis = redis
        self._settings = settings
        self._clock = SystemClock() if clock is None else clock
        self._until: float | None = None

    async def look(self) -> None:
        """Begin to hold if data is missing; call it when shards have been sealed, before a claim from there.

        A loss after the seal takes the seal along, and shows at the claim.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; nothing is known yet.

        """
        if self._until is not None:
            return
        found = await self._redis.execute_command("GET", keys.continuity())
        if found == _KEPT:
            return
        if found is None and not await self._polled_lately():
            await self._note(_KEPT)
            return
        wait_s = self._settings.slot_lease.total_seconds()
        self._until = self._clock.monotonic() + wait_s
        log.warning("Redis 丢失过数据，暂缓认领，等待此前发出的查询全部结束", wait_s=wait_s)

    async def report_loss(self) -> None:
        """Have the next look hold: a shard was found without what it must hold.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; call it again.

        """
        await self._note(_BROKEN)
        self._until = None

    async def is_on(self) -> bool:
        """Whether nothing may be claimed yet.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; it is still on.

        """
        if self._until is None:
            return False
        if self._clock.monotonic() < self._until:
            return True
        await self._note(_KEPT)
        self._until = None
        log.info("此前发出的查询已全部结束，恢复认领")
        return False

    async def _note(self, continuity: bytes) -> None:
        await self._redis.execute_command("SET", keys.continuity(), continuity)

    async def _polled_lately(self) -> bool:
        """Whether PostgreSQL counted a poll that may still be under way; in doubt it may.

        A poll is counted when its card is claimed. The workers' clocks name the minute, so the earlier of
        this one's and PostgreSQL's is what the minutes are measured against.
        """
        span = self._settings.visibility + self._settings.slot_lease
        try:
            return bool(await self._pool.fetchval(_POLLED_LATELY, self._clock.now(), span))
        except DATABASE_FAULTS:
            return True
