"""Notices to the leader that a shard has something due sooner than it can know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from redis.exceptions import ResponseError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS, is_outage
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.polling import keys
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.server_clock import ServerClock
from junhong_cmp.polling.shards import ShardId

_PACKAGE: Final = __package__ or ""
_MOST_TAKEN: Final = 1000


@dataclass(frozen=True, slots=True)
class Notices:
    """What stood on the board at ``now_ms`` of Redis time: shards and the earliest due time posted."""

    now_ms: int
    dues: Mapping[ShardId, int] = field(default_factory=dict)


class NoticeBoard:
    """A notice board spares the leader asking every shard all the time.

    The leader knows from its last look when a shard's next card is due; only what others let be due sooner
    can surprise it. They post it here, after the shard has it, and the leader takes all notices in one
    call, however many shards there are. It looks at each shard after ``recheck`` anyway: what is due later
    needs no notice, and a notice that got lost delays a card by no more. The board obeys a term like a
    shard does, so lost data and a later term show at the next look.
    """

    def __init__(self, redis: RedisClient, clock: ServerClock, *, recheck: timedelta) -> None:
        self._redis = redis
        self._clock = clock
        self._recheck_ms = milliseconds(recheck)
        self._take = LuaScript.load(_PACKAGE, "take_notices")
        self._seal = LuaScript.load(_PACKAGE, "seal")
        self._now = LuaScript.load(_PACKAGE, "now")
        self._rare = RareLog()

    async def post(self, dues: Mapping[ShardId, int]) -> None:
        """Post the earliest time at which something is due in each shard, where it is soon."""
        now_ms = self._clock.now_ms()
        horizon = None if now_ms is None else now_ms + self._recheck_ms
        urgent: list[Any] = []
        for shard, due in dues.items():
            if horizon is None or due < horizon:
                urgent += (due, keys.shard_tag(shard))
        if not urgent:
            return
        try:
            await self._redis.execute_command("ZADD", keys.notices(), "LT", *urgent)
        except FAULTS as error:  # the shard has it: the leader finds it at its next look without a notice
            self._rare.warning("到期通知未能写入，卡最迟在复查时被发现", error=type(error).__name__)

    async def take(self, epoch: int) -> Notices:
        """Take what stands on the board.

        Raises:
            FencedError: the board obeys another epoch, or none.
            redis.exceptions.RedisError, OSError: Redis failed; notices may be lost.

        """
        try:
            reply = await self._take.run(
                self._redis, (keys.notices(), keys.notices_fence()), (epoch, _MOST_TAKEN)
            )
        except ResponseError as error:
            if is_outage(error):
                raise
            self._rare.warning("到期通知的键中有异常数据，已跳过", error=str(error))
            return Notices(int(await self._now.run(self._redis, (keys.notices(),))))
        if reply[0] == b"FENCED":
            raise FencedError(epoch=epoch, fence=int(reply[1]) if reply[1] else None)
        _, now, taken = reply
        dues: dict[ShardId, int] = {}
        for tag, due in zip(taken[::2], taken[1::2], strict=True):
            shard = keys.parse_shard_tag(tag)
            if shard is not None:
                dues[shard] = int(min(float(due), 2**53))
        return Notices(int(now), dues)

    async def seal(self, epoch: int) -> None:
        """Let the board obey ``epoch`` from now on.

        Raises:
            FencedError: it obeys a higher epoch already.

        """
        try:
            fence = int(await self._seal.run(self._redis, (keys.notices_fence(),), (epoch,)))
        except ResponseError as error:
            if is_outage(error):
                raise
            self._rare.warning("到期通知的键中有异常数据，已跳过", error=str(error))
            return
        if fence != epoch:
            raise FencedError(epoch=epoch, fence=fence)
