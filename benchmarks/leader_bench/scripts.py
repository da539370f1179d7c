"""Each script of polling with the largest batch it is ever given, one after the other."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling.concurrency import MOST_SLOTS, AccountConcurrency, Slot
from junhong_cmp.polling.keys import shard_due
from junhong_cmp.polling.planner import MOST_A_SHARD
from junhong_cmp.polling.queue_manager import MOST_ADDED, MOST_CHANGED, MOST_SCANNED, PollingQueueManager
from junhong_cmp.polling.shard_scripts import ShardScripts
from junhong_cmp.polling.tasks import POLLING_QUEUE, TaskType
from leader_bench.readings import ServerMeter

_VISIBILITY: Final = timedelta(minutes=10)
_EPOCH: Final = 1
_CARDS: Final = 50_000
_ENQUEUED: Final = 200
"""Tasks of one script, as the client cuts them."""
_NOTICES: Final = 1000


@dataclass
class ScriptRounds:
    """A round runs every script once, and leaves the shards as they were for the next."""

    redis: Any
    queue: PollingQueueManager
    accounts: Mapping[int, CarrierAccount]
    meter: ServerMeter

    async def prepare(self) -> None:
        """Fill one shard and choose others."""
        shards = self.queue.shards(self.accounts)
        self._shard, self._other, *rest = shards
        self._noticed = rest[:_NOTICES]
        self._scripts = ShardScripts(self.redis)
        self._concurrency = AccountConcurrency(self.redis)
        self._client = Client(self.redis)
        self._now_ms = await self.queue.now_ms()
        await self.queue.seal(_EPOCH, [self._shard, self._other])
        due = [part for card in range(1, _CARDS + 1) for part in (self._now_ms - card, card)]
        await self.queue.add_places({self._shard: due})

    async def run(self) -> None:
        """Run every script."""
        await self._poll()
        await self._change()
        await self._admit()
        await self._hand_over()

    async def close(self) -> None:
        """Finish what is under way."""
        await self._concurrency.close()

    async def _poll(self) -> None:
        shard, measure = self._shard, self.meter.measure
        claim = self.queue.claim(shard, epoch=_EPOCH, limit=MOST_A_SHARD, visibility=_VISIBILITY)
        batch = await measure("claim", claim)
        claims = [(one.card_id, one.claim) for one in batch.claims]
        (started,) = await measure("start", self._scripts.start({shard: claims}, timeout_ms=60_000))
        later = [(card, started[0].claim, self._now_ms + 86_400_000) for card, _ in claims]
        await measure("write_back", self._scripts.write_back({shard: later}))
        earlier = [(card, self._now_ms - 1) for card, _ in claims[:MOST_CHANGED]]
        await measure("hasten", self._scripts.hasten({shard: earlier}))

    async def _change(self) -> None:
        other, measure = self._other, self.meter.measure
        places = [part for card in range(MOST_ADDED) for part in (self._now_ms, card)]
        await measure("add", self._scripts.add({other: places}), word=b"ZADD")
        leaving = [(card, "") for card in range(MOST_CHANGED)]
        await measure("remove", self._scripts.remove({other: leaving}))
        await self.redis.delete(shard_due(other))
        await measure("scan", self.queue.scan(self._shard, 0, MOST_SCANNED), word=b"ZSCAN")
        await measure("count", self._scripts.count([self._shard], overdue_ms=60_000))
        await measure("seal", self._scripts.seal([self._shard], epoch=_EPOCH))

    async def _admit(self) -> None:
        account = next(iter(self.accounts.values()))
        call = self._concurrency.acquire_batch(account, TaskType.POLLING_CARDDATA, range(MOST_SLOTS))
        slots = await self.meter.measure("admit", call)
        held = [slot for slot in slots if isinstance(slot, Slot)]
        if len(held) != MOST_SLOTS:
            raise AssertionError(slots[0])
        await self.meter.measure("release", self._release(held))

    async def _release(self, slots: Sequence[Slot]) -> None:
        await asyncio.gather(*(self._concurrency.release(slot) for slot in slots))

    async def _hand_over(self) -> None:
        await self.queue.add_places(dict.fromkeys(self._noticed, (self._now_ms, 1)))
        await self.meter.measure("take_notices", self.queue.take_notices(_EPOCH))
        await self.redis.delete(*(shard_due(one) for one in self._noticed))
        polls = [(Task("bench", bytes(96)), EnqueueOptions(queue=POLLING_QUEUE)) for _ in range(_ENQUEUED)]
        await self.meter.measure("enqueue", self._client.enqueue_many(polls))
