"""One round of claims over all accounts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from junhong_cmp.asynq.outages import is_outage
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.polling.backlog import BacklogGate
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.dispatcher import PollDispatcher
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.keys import shard_tag
from junhong_cmp.polling.pacer import AccountPacer
from junhong_cmp.polling.planner import ShardPlanner
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import ClaimBatch
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.term import PollingTerm


@dataclass(slots=True, kw_only=True)
class ClaimRound:
    """A claim round claims what is due and allowed, hands it over, and says when to come again."""

    queue_manager: PollingQueueManager
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    dispatcher: PollDispatcher
    backlog: BacklogGate
    term: PollingTerm
    stats: PollStats
    settings: PollingSettings
    clock: Clock = field(default_factory=SystemClock)
    _planner: ShardPlanner = field(init=False)
    _pacers: dict[int, AccountPacer] = field(init=False, default_factory=dict)
    _shards: Mapping[int, Sequence[ShardId]] = field(init=False, default_factory=dict)
    _turn: int = field(init=False, default=0)
    _rare: RareLog = field(init=False, default_factory=RareLog)

    def __post_init__(self) -> None:
        """Begin without knowledge of the shards: the first round asks all of them."""
        self._planner = ShardPlanner(recheck_ms=milliseconds(self.settings.idle_tick))

    async def run(self) -> float:
        """Claim once; return the seconds until the next round makes sense.

        Raises:
            FencedError: a shard obeys another term, or has lost its data.
            TermOverError: the term can no longer be relied on; what was not handed over stays claimed.
            redis.exceptions.RedisError, OSError: Redis failed; what was claimed is not lost.

        """
        snapshot = self.config_manager.snapshot
        await self.term.cover(snapshot.accounts)
        now_ms = await self.queue_manager.now_ms()
        await self._hand_over(now_ms)
        room = await self.backlog.room()
        accounts = self._callable_accounts(snapshot)
        if not room or not accounts:
            return self.settings.idle_tick.total_seconds() / 4
        in_flight = await self.concurrency.in_flight([account.id for account in accounts])
        accounts = [account for account in accounts if account.id in in_flight]
        limits = self._plan(accounts, in_flight, room, now_ms)
        refused = await self._claim(limits, now_ms)
        await self._hand_over(now_ms)
        if refused is not None:
            raise refused
        return self._pause(accounts, now_ms)

    async def _hand_over(self, now_ms: int) -> None:
        self.term.check()  # whoever was frozen since the claim must not enqueue for the next leader
        await self.dispatcher.flush(now_ms)

    def _callable_accounts(self, snapshot: PollingConfigSnapshot) -> list[CarrierAccount]:
        """Return the accounts that may be called for anything now, and note their shards."""
        now = self.clock.now()
        self._shards = {
            account_id: self.queue_manager.shards((account_id,), task_types)
            for account_id in snapshot.accounts
            if (task_types := snapshot.callable_types(account_id, now))
        }
        accounts = [snapshot.accounts[account_id] for account_id in self._shards]
        if not accounts:
            return []
        self._turn = (self._turn + 1) % len(accounts)  # when room is scarce, nobody is always last
        return accounts[self._turn :] + accounts[: self._turn]

    def _plan(
        self, accounts: Sequence[CarrierAccount], in_flight: Mapping[int, int], room: int, now_ms: int
    ) -> dict[ShardId, int]:
        now = time.monotonic()
        limits: dict[ShardId, int] = {}
        for account in accounts:
            pacer = self._pacers.setdefault(account.id, AccountPacer(account.qps, now))
            allowance = min(room, pacer.allowance(account, now, in_flight[account.id]))
            planned = self._planner.plan(self._shards[account.id], allowance, now_ms)
            room -= sum(planned.values())
            limits |= planned
        return limits

    async def _claim(self, limits: Mapping[ShardId, int], now_ms: int) -> Exception | None:
        """Claim by plan; return the first refusal, after all that was claimed has been taken over."""
        refused: Exception | None = None
        batches = await self.queue_manager.claim_many(
            limits, epoch=self.term.epoch, visibility=self.settings.visibility
        )
        for shard, batch in zip(limits, batches, strict=True):
            if isinstance(batch, ClaimBatch):
                self._take(shard, batch)
            elif isinstance(batch, FencedError) or is_outage(batch):
                refused = refused if refused is not None else batch
            else:  # e.g. a foreign value under the shard's key: the other shards go on
                self._planner.learn(shard, None, now_ms)
                self._rare.warning("分片无法认领", shard=shard_tag(shard), error=str(batch))
        return refused

    def _take(self, shard: ShardId, batch: ClaimBatch) -> None:
        self._planner.learn(shard, batch.next_due_ms, batch.now_ms)
        if batch.claims:
            self._pacers[shard.account_id].spend(len(batch.claims))
            self.stats.count_due(shard.task_type, shard.account_id, len(batch.claims))
            self.dispatcher.add(shard, batch.claims)

    def _pause(self, accounts: Sequence[CarrierAccount], now_ms: int) -> float:
        """Return the time until some account has both a card due and a token."""
        soonest = self.settings.idle_tick.total_seconds()
        for account in accounts:
            look = self._planner.next_look(self._shards[account.id], now_ms)
            wait = max((look - now_ms) / 1000, self._pacers[account.id].seconds_to_next())
            soonest = min(soonest, wait)
        return max(soonest, self.settings.min_tick.total_seconds())
