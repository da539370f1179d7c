"""The waiting cards of all shards: adding, claiming, starting, writing back, removing."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog
from redis.exceptions import ResponseError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import is_outage
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.polling import keys
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.shard_batches import ShardBatches
from junhong_cmp.polling.shard_scripts import ClaimBatch, ShardCounts, ShardScripts, Started
from junhong_cmp.polling.shards import ShardId, shard_of
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

log = structlog.stdlib.get_logger(__name__)

NEVER_MS: Final = 2**53
"""A score no due time or claim reaches; beyond it a sorted set cannot count single milliseconds."""

_CHUNK: Final = 1000
_SHOWN_MEMBERS: Final = 3
_SHOWN_CHARACTERS: Final = 20

_Flags = Awaitable[list[list[bool] | Exception]]
_Script = Callable[[Mapping[ShardId, Sequence[tuple[int, Any]]]], _Flags]


class PollingQueueManager:
    """A queue manager keeps every waiting card in exactly one sorted set for each task type.

    A card never leaves its set but by removal: claiming, starting and writing back only move its
    score, and each asks for the score it expects. ``start``, ``write_back`` and ``remove_claimed``
    gather while an earlier batch runs and go to Redis together, one script a shard, all shards in
    one round trip. Redis faults are raised to each caller of the batch. After a lost reply every
    call may be repeated: a repeated ``start`` or ``write_back`` finds its claim superseded.
    A shard with a foreign value under one of its keys is reported and passed over: where many
    shards are changed or looked through, it never keeps the others from their turn.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        shards_per_account: int = 8,
        turn_timeout: timedelta = timedelta(seconds=60),
    ) -> None:
        self._redis = redis
        self._shards_per_account = shards_per_account
        self._scripts = ShardScripts(redis)
        self._batches = ShardBatches(self._scripts, timeout_ms=milliseconds(turn_timeout))
        self._rare = RareLog()
        self._now = LuaScript.load(__package__ or "", "now")

    async def close(self) -> None:
        """Finish the batches under way."""
        await self._batches.close()

    async def now_ms(self) -> int:
        """Return the time of the Redis server, unix milliseconds."""
        return int(await self._now.run(self._redis, (keys.generation(),)))

    def shard(self, task_type: TaskType, account_id: int, card_id: int) -> ShardId:
        """Return the shard a card of the account waits in."""
        return ShardId(task_type, account_id, shard_of(card_id, self._shards_per_account))

    def shards(
        self, account_ids: Iterable[int], task_types: Sequence[TaskType] = POLLING_TASK_TYPES
    ) -> list[ShardId]:
        """Return every shard of the accounts."""
        return [
            ShardId(task_type, account_id, number)
            for account_id in account_ids
            for task_type in task_types
            for number in range(self._shards_per_account)
        ]

    async def add_many(self, task_type: TaskType, account_id: int, cards: Sequence[tuple[int, int]]) -> int:
        """Add (card id, due ms) pairs of one account; return how many were missing before."""
        return await self.add({(task_type, account_id): cards})

    async def add(self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, int]]]) -> int:
        """Add (card id, due ms) pairs by task type and account; one already there keeps its score."""
        return await self._change(self._scripts.add, cards)

    async def remove(
        self, task_type: TaskType, account_id: int, cards: Sequence[tuple[int, int | str]]
    ) -> int:
        """Remove (card id, score) pairs, score "" for whatever it is; return how many were there."""
        return await self.remove_cards({(task_type, account_id): cards})

    async def remove_cards(
        self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, int | str]]]
    ) -> int:
        """Remove (card id, score) pairs by task type and account; return how many were there."""
        return await self._change(self._scripts.remove, cards)

    async def remove_from(self, shard: ShardId, cards: Sequence[tuple[int, int | str]]) -> int:
        """Remove (card id, score) pairs from a shard, be it their own or not."""
        (flags,) = await self._scripts.remove({shard: cards})
        if isinstance(flags, Exception):
            raise flags
        return sum(flags)

    async def poll_now(self, task_type: TaskType, account_id: int, card_ids: Sequence[int]) -> int:
        """Make waiting cards due now; return how many. One that may be claimed is left alone."""
        return await self.hasten({(task_type, account_id): [(card_id, "") for card_id in card_ids]})

    async def hasten(self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, int | str]]]) -> int:
        """Bring waiting cards forward to (card id, due ms), due "" for now; return how many moved."""
        return await self._change(self._scripts.hasten, cards)

    async def claim(self, shard: ShardId, *, epoch: int, limit: int, visibility: timedelta) -> ClaimBatch:
        """Claim up to ``limit`` due cards of a shard, oldest first.

        Raises:
            FencedError: the shard obeys another epoch, or none.

        """
        (batch,) = await self.claim_many({shard: limit}, epoch=epoch, visibility=visibility)
        if isinstance(batch, Exception):
            raise batch
        return batch

    async def claim_many(
        self, limits: Mapping[ShardId, int], *, epoch: int, visibility: timedelta
    ) -> list[ClaimBatch | Exception]:
        """Claim from many shards in one round trip; the result of each, or why it was refused."""
        if not limits:
            return []
        batches = await self._scripts.claim(limits, epoch=epoch, visibility_ms=milliseconds(visibility))
        for shard, batch in zip(limits, batches, strict=True):
            if isinstance(batch, ClaimBatch) and batch.foreign:
                _report_foreign(shard, batch.foreign)
        return batches

    async def start(self, task_type: TaskType, account_id: int, card_id: int, claim: int) -> Started | None:
        """Start a claimed card; None when the claim was superseded or the card removed."""
        return await self._batches.start(self.shard(task_type, account_id, card_id), card_id, claim)

    async def write_back(self, shard: ShardId, card_id: int, claim: int, next_due: int) -> bool:
        """Let a started card wait until ``next_due`` ms; False when the claim was superseded."""
        return await self._batches.write_back(shard, card_id, claim, next_due)

    async def remove_claimed(self, shard: ShardId, card_id: int, claim: int) -> bool:
        """Remove a started card that is not to be polled any more, if the claim still holds."""
        return await self._batches.remove(shard, card_id, claim)

    async def scan(self, shard: ShardId, cursor: int, count: int) -> tuple[int, list[tuple[int, int]]]:
        """Return the next cursor (0 at the end) and some (card id, score) pairs of a shard."""
        try:
            cursor, pairs = await self._redis.execute_command(
                "ZSCAN", keys.shard_due(shard), cursor, "COUNT", count
            )
        except ResponseError as error:
            self._pass_over(shard, error)
            return 0, []
        return int(cursor), [
            (int(card), int(min(score, NEVER_MS))) for card, score in pairs if card.isdigit()
        ]

    async def mark_generation(self, now_ms: int) -> None:
        """Note that a full initialisation is complete."""
        await self._redis.execute_command("SET", keys.generation(), now_ms)

    async def has_generation(self) -> bool:
        """Tell whether a full initialisation has been completed since Redis last lost its data."""
        return bool(await self._redis.execute_command("EXISTS", keys.generation()))

    async def seal(self, epoch: int, shards: Sequence[ShardId]) -> None:
        """Let the shards obey ``epoch`` from now on.

        Raises:
            FencedError: a shard obeys a higher epoch already.

        """
        for start in range(0, len(shards), _CHUNK):
            chunk = shards[start : start + _CHUNK]
            refusals = await self._scripts.seal(chunk, epoch=epoch)
            for shard, refused in zip(chunk, refusals, strict=True):
                if isinstance(refused, FencedError):
                    raise refused
                if refused is not None:
                    self._pass_over(shard, refused)

    async def counts(
        self,
        account_ids: Iterable[int],
        *,
        task_types: Sequence[TaskType] = POLLING_TASK_TYPES,
        overdue_after: timedelta = timedelta(minutes=1),
    ) -> ShardCounts:
        """Count the cards of the accounts: all, due, and due for longer than ``overdue_after``."""
        shards, total = self.shards(account_ids, task_types), ShardCounts()
        for start in range(0, len(shards), _CHUNK):
            chunk = shards[start : start + _CHUNK]
            replies = await self._scripts.count(chunk, overdue_ms=milliseconds(overdue_after))
            for shard, counts in zip(chunk, replies, strict=True):
                if isinstance(counts, Exception):
                    self._pass_over(shard, counts)
                else:
                    total += counts
        return total

    async def _change(
        self, run: _Script, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, Any]]]
    ) -> int:
        grouped: dict[ShardId, list[tuple[int, Any]]] = defaultdict(list)
        for (task_type, account_id), pairs in cards.items():
            for pair in pairs:
                grouped[self.shard(task_type, account_id, pair[0])].append(pair)
        changed = 0
        for chunk in _chunks(grouped):
            for shard, flags in zip(chunk, await run(chunk), strict=True):
                if isinstance(flags, Exception):
                    self._pass_over(shard, flags)
                else:
                    changed += sum(flags)
        return changed

    def _pass_over(self, shard: ShardId, error: Exception) -> None:
        """Report an error of this shard alone; one of Redis as a whole is raised."""
        if is_outage(error):
            raise error
        self._rare.warning("分片的键中有异常数据，已跳过", shard=keys.shard_tag(shard), error=str(error))


def _chunks(
    grouped: Mapping[ShardId, Sequence[tuple[int, Any]]],
) -> Iterator[dict[ShardId, Sequence[tuple[int, Any]]]]:
    """Cut the pairs into round trips of about ``_CHUNK``, so that no script holds Redis for long."""
    chunk: dict[ShardId, Sequence[tuple[int, Any]]] = {}
    room = _CHUNK
    for shard, pairs in grouped.items():
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            if chunk and (shard in chunk or len(part) > room):
                yield chunk
                chunk, room = {}, _CHUNK
            chunk[shard] = part
            room -= len(part)
    if chunk:
        yield chunk


def _report_foreign(shard: ShardId, members: Sequence[bytes]) -> None:
    shown = [repr(member[:_SHOWN_CHARACTERS]) for member in members[:_SHOWN_MEMBERS]]
    log.warning(
        "分片中有不是卡编号的成员，已移除",
        shard=keys.shard_tag(shard),
        count=len(members),
        members=shown,
    )
