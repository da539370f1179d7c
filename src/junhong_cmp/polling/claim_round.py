"""One round of claims over all accounts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from junhong_cmp.asynq.outages import FAULTS, is_outage
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.polling.backlog import BacklogGate
from junhong_cmp.polling.batch_sizes import batch_size
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.dispatcher import PollDispatcher
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.fair_shares import fair_shares
from junhong_cmp.polling.keys import shard_tag
from junhong_cmp.polling.pacer import AccountPacer
from junhong_cmp.polling.planner import ShardPlanner
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import ClaimBatch
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.polling.term import PollingTerm

_MOST_A_ROUND: Final = 5000
"""Cards claimed at a time; a round must not take so long that others become overdue meanwhile."""


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
    _given: dict[ShardId, int] = field(init=False, default_factory=dict)
    _epoch: int = field(init=False, default=0)
    _turn: int = field(init=False, default=0)
    _rare: RareLog = field(init=False, default_factory=RareLog)

    def __post_init__(self) -> None:
        """Begin without knowledge of the shards: the first round asks all of them."""
        recheck_ms = milliseconds(self.queue_manager.recheck)
        self._planner = ShardPlanner(self.queue_manager.shards, recheck_ms=recheck_ms)

    async def run(self) -> float:
        """Claim once; return the seconds until the next round makes sense.

        Raises:
            FencedError: a shard obeys another term, or has lost data: all, or a claim given in this term.
            TermOverError: the term can no longer be relied on; what was not handed over stays claimed.
            redis.exceptions.RedisError, OSError: Redis failed; what was claimed is not lost.

        """
        snapshot = self.config_manager.snapshot
        if not snapshot.accounts:
            return self.settings.idle_tick.total_seconds()
        self.term.check()
        await self.term.cover(snapshot.accounts)
        now_ms = await self._read_notices()
        await self._hand_over(now_ms)
        if await self.term.is_on_hold(self._given):
            return self.settings.idle_tick.total_seconds()
        room = await self.backlog.room()
        callable_types = self._callable_types(snapshot)
        due = [
            account_id
            for account_id, types in callable_types.items()
            if self._planner.next_look(account_id, types) <= now_ms
        ]
        if not room:
            return self.settings.idle_tick.total_seconds()
        if not due:
            return self._pause(callable_types, now_ms)
        refused = await self._claim(await self._plan(snapshot, callable_types, due, room, now_ms), now_ms)
        await self._hand_over(now_ms)
        if refused is not None:
            raise refused
        return self._pause(callable_types, now_ms)

    async def _read_notices(self) -> int:
        """Take in what others let be due, and return the time; what may have got lost is asked for anew."""
        if self._epoch != self.term.epoch:
            self._planner.forget()
            self._given.clear()
            self._epoch = self.term.epoch
        try:
            notices = await self.queue_manager.take_notices(self._epoch)
        except FAULTS:
            self._planner.forget()
            raise
        for shard, due_ms in notices.dues.items():
            self._planner.hear(shard, due_ms)
        return notices.now_ms

    async def _hand_over(self, now_ms: int) -> None:
        while self.dispatcher.has_waiting:
            self.term.check()  # whoever was frozen since the claim must not enqueue for the next leader
            await self.dispatcher.flush(now_ms)

    def _callable_types(self, snapshot: PollingConfigSnapshot) -> dict[int, tuple[TaskType, ...]]:
        """Return the accounts that may be called now, and for what."""
        now = self.clock.now()
        return {
            account_id: types
            for account_id in snapshot.accounts
            if (types := snapshot.callable_types(account_id, now))
        }

    async def _plan(
        self,
        snapshot: PollingConfigSnapshot,
        callable_types: Mapping[int, Sequence[TaskType]],
        due: Sequence[int],
        room: int,
        now_ms: int,
    ) -> dict[ShardId, int]:
        """Share the room among the accounts that have something due, by what each is allowed."""
        loads = await self.concurrency.loads.read([snapshot.accounts[account_id] for account_id in due])
        accounts = [snapshot.accounts[account_id] for account_id in loads]
        now = time.monotonic()
        wants = []
        for account in accounts:
            pacer = self._pacers.setdefault(account.id, AccountPacer(loads[account.id].qps, now))
            wants.append(pacer.allowance(account, now, loads[account.id]))
        self._turn += 1
        limits: dict[ShardId, int] = {}
        sizes = [_sizes(account, callable_types[account.id]) for account in accounts]
        largest = max((size for by_type in sizes for size in by_type.values()), default=1)
        shares = fair_shares(min(room, max(1, _MOST_A_ROUND // largest)), wants, self._turn)
        for account, by_type, share in zip(accounts, sizes, shares, strict=True):
            limits |= self._planner.plan(account.id, by_type, share, now_ms)
        return limits

    async def _claim(self, limits: Mapping[ShardId, int], now_ms: int) -> Exception | None:
        """Claim by plan; return the first refusal, after all that was claimed has been taken over."""
        refused: Exception | None = None
        batches = await self.queue_manager.claim_many(
            limits, epoch=self.term.epoch, visibility=self.settings.visibility, given=self._given
        )
        for shard, batch in zip(limits, batches, strict=True):
            if isinstance(batch, ClaimBatch):
                self._take(shard, batch, limits[shard])
            elif isinstance(batch, FencedError) or is_outage(batch):
                refused = refused if refused is not None else batch
            else:  # e.g. a foreign value under the shard's key: the other shards go on
                self._planner.learn(shard, None, now_ms)
                self._rare.warning("分片无法认领", shard=shard_tag(shard), error=str(batch))
        return refused

    def _take(self, shard: ShardId, batch: ClaimBatch, limit: int) -> None:
        account = self.config_manager.snapshot.accounts.get(shard.account_id)
        size = 1 if account is None else batch_size(account, shard.task_type)
        gathers = size > 1 and len(batch.claims) < limit
        gather_ms = milliseconds(self.settings.gather) if gathers else 0
        self._planner.learn(shard, batch.next_due_ms, batch.now_ms, gather_ms=gather_ms)
        if batch.claims:
            self._given[shard] = batch.claims[0].claim
            tasks = self.dispatcher.add(shard, batch.claims, batch_size=size)
            self._pacers[shard.account_id].spend(tasks)
            self.stats.count_due(shard.task_type, shard.account_id, len(batch.claims))

    def _pause(self, callable_types: Mapping[int, Sequence[TaskType]], now_ms: int) -> float:
        """Return the time until some account has both a card due and a token."""
        soonest = self.settings.idle_tick.total_seconds()
        for account_id, types in callable_types.items():
            wait = (self._planner.next_look(account_id, types) - now_ms) / 1000
            if wait < soonest:
                pacer = self._pacers.get(account_id)
                soonest = min(soonest, max(wait, pacer.seconds_to_next() if pacer is not None else 0.0))
        return max(soonest, self.settings.min_tick.total_seconds())


def _sizes(account: CarrierAccount, task_types: Sequence[TaskType]) -> dict[TaskType, int]:
    return {task_type: batch_size(account, task_type) for task_type in task_types}
