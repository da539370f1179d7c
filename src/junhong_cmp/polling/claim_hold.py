"""Claims held back after Redis lost data, until every poll it forgot has ended."""

from datetime import UTC, datetime
from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.polling import keys
from junhong_cmp.polling.continuity import BROKEN, Continuity
from junhong_cmp.polling.hold_notice import post_hold, withdraw_hold
from junhong_cmp.polling.server_identity import is_cluster, server_identity
from junhong_cmp.polling.settings import PollingSettings

log = structlog.stdlib.get_logger(__name__)

_LOST: Final = "Redis 丢失过数据，暂缓认领，等待此前发出的查询全部结束"
_REPLACED: Final = "Redis 重启或切换过而无主节点核对数据，暂缓认领，等待此前发出的查询全部结束"
_SERVER_CHECK_S: Final = 5.0
_POLLED_LATELY: Final = """
SELECT EXISTS (
    SELECT FROM poll_minute
    WHERE minute >= least($1::timestamptz, now()) - $2::interval - interval '1 minute')
"""
_CLAIMED_SINCE: Final = "SELECT EXISTS (SELECT FROM poll_minute WHERE minute > $1 AND due > 0)"


class ClaimHold:
    """A claim hold keeps a leader from claiming while polls may be under way that Redis knows nothing of.

    What keeps a card from being asked about twice at once are its claim and its slot, and a Redis that
    lost its data has neither. But a poll under way then ends within the lease its slot had. So the leader
    that finds data missing waits for so long, by the monotonic clock, while cards are put back into their
    shards. A key, ``polling:continuity``, says for which Redis process nothing was lost: a snapshot that was
    restored brings along the name of another. It is written when the hold is over, so whoever leads before
    that holds a whole time himself; a notice in Redis tells others for how long. Where PostgreSQL counted no
    polls lately, as at a first start, nothing is held up.
    """

    def __init__(
        self, pool: Pool, redis: RedisClient, settings: PollingSettings, *, clock: Clock | None = None
    ) -> None:
        self._pool = pool
        self._redis = redis
        self._settings = settings
        self._clock = SystemClock() if clock is None else clock
        self._until: float | None = None
        self._server: str | None = None
        self._next_check = 0.0

    async def look(self) -> None:
        """Begin to hold if data is missing; call it when shards have been sealed, before a claim from there.

        A loss after the seal takes the seal along, and shows at the claim.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; nothing is known yet.

        """
        if self._until is not None:
            return
        found = await self._redis.execute_command("GET", keys.continuity())
        if self._server is None:
            self._server = await server_identity(self._redis)
        whole = Continuity(self._server)
        if found == whole.encode().encode():
            return
        doubt = await self._doubt(found, self._server)
        if doubt is None:
            await self._note(whole.encode())
            return
        wait = self._settings.slot_lease
        await post_hold(self._redis, wait)
        self._until = self._clock.monotonic() + wait.total_seconds()
        log.warning(doubt, wait_s=wait.total_seconds())

    async def new_server(self) -> str | None:
        """Return the name of the Redis process if it is not the one looked at; asked seldom.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed.

        """
        now = self._clock.monotonic()
        if self._until is not None or self._server is None or now < self._next_check:
            return None
        self._next_check = now + _SERVER_CHECK_S
        found = await server_identity(self._redis)
        return None if found == self._server else found

    async def vouch(self, server: str) -> None:
        """Say that a Redis process has all that this leader ever put there.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed.

        """
        await self._note(Continuity(server).encode())
        self._server = server
        log.info("Redis 重启或切换过，核对无误，继续认领")

    async def leave(self) -> None:
        """Say that nothing will be claimed any more by this leader, who leaves Redis in order.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed.

        """
        if self._server is None or self._until is not None or is_cluster(self._redis):
            return
        at_ms = int(self._clock.now().timestamp() * 1000)
        await self._note(Continuity(self._server, at_ms).encode())

    async def report_loss(self) -> None:
        """Have the next look hold: a shard was found without what it must hold.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; call it again.

        """
        await self._note(BROKEN)
        self._until = self._server = None

    async def is_on(self) -> bool:
        """Whether nothing may be claimed yet.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; it is still on.

        """
        if self._until is None or self._server is None:
            return False
        if self._clock.monotonic() < self._until:
            return True
        await self._note(Continuity(self._server).encode())
        await withdraw_hold(self._redis)
        self._until = None
        log.info("此前发出的查询已全部结束，恢复认领")
        return False

    async def _doubt(self, found: bytes | None, server: str) -> str | None:
        """Return what the operator is told if polls may be under way that Redis has forgotten."""
        if found is None:
            return _LOST if await self._polled_lately() else None
        word = Continuity.decode(found)
        if word is None:
            return _LOST
        if word.server == server:  # its leader left in order, or else it would be the word of a whole Redis
            return None
        if word.left_at_ms is None:
            return _REPLACED if await self._polled_lately() else None
        return _REPLACED if await self._claimed_since(word.left_at_ms) else None

    async def _note(self, word: str) -> None:
        await self._redis.execute_command("SET", keys.continuity(), word)

    async def _polled_lately(self) -> bool:
        """Whether PostgreSQL counted a poll that may still be under way; in doubt it may.

        A poll is counted when its card is claimed. The workers' clocks name the minute, so the earlier of
        this one's and PostgreSQL's is what the minutes are measured against.
        """
        span = self._settings.visibility + self._settings.slot_lease
        return await self._counted(_POLLED_LATELY, self._clock.now(), span)

    async def _claimed_since(self, instant_ms: int) -> bool:
        """Whether PostgreSQL knows of claims that cannot be in what Redis remembers; in doubt it does."""
        if not await self._polled_lately():
            return False
        try:
            instant = datetime.fromtimestamp(instant_ms / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            return True
        return await self._counted(_CLAIMED_SINCE, instant)

    async def _counted(self, question: str, *args: object) -> bool:
        try:
            return bool(await self._pool.fetchval(question, *args))
        except DATABASE_FAULTS:
            return True
