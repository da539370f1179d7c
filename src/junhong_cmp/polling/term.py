"""A leader's term over the shards: its epoch, and which shards obey it."""

from collections.abc import Collection, Mapping
from datetime import timedelta

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import is_outage
from junhong_cmp.leadership.epoch import FencingEpoch
from junhong_cmp.leadership.term import Term
from junhong_cmp.polling.claim_hold import ClaimHold
from junhong_cmp.polling.errors import FencedError, TermOverError
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.shards import ShardId

log = structlog.stdlib.get_logger(__name__)


class PollingTerm:
    """A term opens with its epoch and seals every shard with it before the first claim from there.

    The epoch is that of the leader's lease; without a lease each opening takes a new one. Where it
    finds that Redis has lost data, it is on hold for a while.
    """

    def __init__(
        self,
        redis: RedisClient,
        queue_manager: PollingQueueManager,
        hold: ClaimHold,
        leased: Term | None = None,
    ) -> None:
        self._redis = redis
        self._queue = queue_manager
        self._hold = hold
        self._leased = leased
        self._epochs = FencingEpoch()
        self._epoch = 0
        self._covered: set[int] = set()

    @property
    def epoch(self) -> int:
        """The epoch of the term; 0 before it is open."""
        return self._epoch

    @property
    def is_open(self) -> bool:
        """Whether the term has an epoch."""
        return self._epoch > 0

    async def open(self) -> None:
        """Take the epoch; no shard obeys it yet."""
        self._epoch = self._leased.epoch if self._leased else await self._epochs.next(self._redis)
        log.info("轮询调度任期开始", epoch=self._epoch)

    def check(self) -> None:
        """Make sure that nobody else can have been elected yet.

        Raises:
            TermOverError: somebody can.

        """
        if self._leased is not None and not self._leased.trusted:
            raise TermOverError(self._epoch)

    def close(self) -> None:
        """Give the epoch up; the term can be opened anew."""
        self._epoch = 0
        self._covered.clear()

    async def cover(self, account_ids: Collection[int]) -> None:
        """Seal the shards of the accounts that are not sealed yet.

        Raises:
            FencedError: a later term has sealed one of them.

        """
        new = [account_id for account_id in account_ids if account_id not in self._covered]
        if new:
            await self._queue.seal(self._epoch, self._queue.shards(new))
            await self._hold.look()
            self._covered.update(new)

    async def is_on_hold(self, given: Mapping[ShardId, int]) -> bool:
        """Whether nothing may be claimed yet, because of polls that Redis has forgotten.

        ``given`` are the latest claims of this term. A Redis that was restarted or replaced meanwhile must
        know all of them, and the seals too; then it has lost nothing that this term relies on.

        Raises:
            FencedError: it does not.

        """
        server = await self._hold.new_server()
        if server is not None:
            await self._confirm(given)
            await self._hold.vouch(server)
        return await self._hold.is_on()

    async def _confirm(self, given: Mapping[ShardId, int]) -> None:
        nothing = dict.fromkeys(self._queue.shards(self._covered), 0)
        for answer in await self._queue.claim_many(
            nothing, epoch=self._epoch, visibility=timedelta(0), given=given
        ):
            if isinstance(answer, FencedError) or (isinstance(answer, Exception) and is_outage(answer)):
                raise answer
