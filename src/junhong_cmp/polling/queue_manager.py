"""The waiting cards of all shards: adding, claiming, starting, writing back, removing."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from redis.exceptions import ResponseError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import is_outage
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.polling import keys
from junhong_cmp.polling.chunks import chunks
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.foreign_members import report_foreign
from junhong_cmp.polling.notice_board import NoticeBoard, Notices
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.server_clock import ServerClock
from junhong_cmp.polling.shard_batches import ShardBatches
from junhong_cmp.polling.shard_scripts import ClaimBatch, ShardCounts, ShardScripts, Started
from junhong_cmp.polling.shards import ShardId, shard_of
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

NEVER_MS: Final = 2**53
"""A score no due time or claim reaches; beyond it a sorted set cannot count single milliseconds."""

_CHUNK: Final = 1000
_BULK: Final = 10_000
MOST_ADDED: Final = 500
MOST_CHANGED: Final = 250
MOST_SCANNED: Final = 1000
"""Cards one command may add, change or return, so that none holds Redis for long."""

_PerShard = Mapping[ShardId, int]
_Script = Callable[[Mapping[ShardId, Sequence[tuple[int, Any]]]], Awaitable[Sequence[list[bool] | Exception]]]


class PollingQueueManager:
    """A queue manager keeps every waiting card in exactly one sorted set for each task type.

    A card never leaves its set but by removal: claiming, starting and writing back only move its
    score, and each asks for the score it expects. ``start``, ``write_back`` and ``remove_claimed``
    gather while an earlier batch runs and go to Redis together, one script a shard, all shards in
    one round trip. Redis faults are raised to each caller of the batch. After a lost reply every
    call may be repeated: a repeated ``start`` or ``write_back`` finds its claim superseded.
    A shard with a foreign value under one of its keys is reported and passed over: where many
    shards are changed or looked through, it never keeps the others from their turn. Whatever lets
    a card be due soon posts a notice for the leader, who asks only shards that have something due.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        shards_per_account: int = 8,
        turn_timeout: timedelta = timedelta(seconds=60),
        recheck: timedelta = timedelta(seconds=30),
    ) -> None:
        self._redis = redis
        self.shards_per_account = shards_per_account
        self.recheck = recheck
        self._clock = ServerClock()
        self._board = NoticeBoard(redis, self._clock, recheck=recheck)
        self._scripts = ShardScripts(redis)
        self.batches = ShardBatches(
            self._scripts, self._board, self._clock, timeout_ms=milliseconds(turn_timeout)
        )
        self._rare = RareLog()
        self._now = LuaScript.load(__package__ or "", "now")

    async def close(self) -> None:
        """Finish the batches under way."""
        await self.batches.close()

    async def now_ms(self) -> int:
        """Return the time of the Redis server, unix milliseconds."""
        now_ms = int(await self._now.run(self._redis, (keys.generation(),)))
        self._clock.note(now_ms)
        return now_ms

    def shard_number(self, card_id: int) -> int:
        """Return the number of the card's shard in every account and type."""
        return shard_of(card_id, self.shards_per_account)

    def shard(self, task_type: TaskType, account_id: int, card_id: int) -> ShardId:
        """Return the shard a card of the account waits in."""
        return ShardId(task_type, account_id, self.shard_number(card_id))

    def shards(
        self, account_ids: Iterable[int], task_types: Sequence[TaskType] = POLLING_TASK_TYPES
    ) -> list[ShardId]:
        """Return every shard of the accounts."""
        return [
            ShardId(task_type, account_id, number)
            for account_id in account_ids
            for task_type in task_types
            for number in range(self.shards_per_account)
        ]

    async def add_many(self, task_type: TaskType, account_id: int, cards: Sequence[tuple[int, int]]) -> int:
        """Add (card id, due ms) pairs of one account; return how many were missing before."""
        return await self.add({(task_type, account_id): cards})

    async def add(self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, int]]]) -> int:
        """Add (card id, due ms) pairs by task type and account; one already there keeps its score."""
        grouped = self._by_shard(cards)
        return await self.add_places(
            {shard: [part for card, due in pairs for part in (due, card)] for shard, pairs in grouped.items()}
        )

    async def add_places(self, places: Mapping[ShardId, Sequence[int]], *, cards_a_trip: int = _BULK) -> int:
        """Add (due ms, card id), … of flat lists by shard, so many at a time; return how many were new."""
        added = 0
        for chunk in chunks(places, longest=2 * MOST_ADDED, most=2 * cards_a_trip):
            for shard, count in zip(chunk, await self._scripts.add(chunk), strict=True):
                if isinstance(count, Exception):
                    self._pass_over(shard, count)
                else:
                    added += count
        if added:
            await self._board.post({shard: min(flat[::2]) for shard, flat in places.items() if flat})
        return added

    async def remove(
        self, task_type: TaskType, account_id: int, cards: Sequence[tuple[int, int | str]]
    ) -> int:
        """Remove (card id, score) pairs, score "" for whatever it is; return how many were there."""
        return await self.remove_cards({(task_type, account_id): cards})

    async def remove_cards(
        self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, int | str]]]
    ) -> int:
        """Remove (card id, score) pairs by task type and account; return how many were there."""
        return await self._change(self._scripts.remove, self._by_shard(cards))

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
        return await self.hasten_places(self._by_shard(cards))

    async def hasten_places(self, places: Mapping[ShardId, Sequence[tuple[int, int | str]]]) -> int:
        """Bring waiting cards forward to (card id, due ms) by shard, due "" for now; return how many."""
        moved = await self._change(self._scripts.hasten, places)
        if moved:
            await self._board.post(
                {shard: min(int(due or 0) for _, due in pairs) for shard, pairs in places.items() if pairs}
            )
        return moved

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
        self, limits: _PerShard, *, epoch: int, visibility: timedelta, given: _PerShard | None = None
    ) -> list[ClaimBatch | Exception]:
        """Claim from many shards in one round trip; one that has forgotten what it has ``given`` refuses."""
        if not limits:
            return []
        visibility_ms = milliseconds(visibility)
        batches = await self._scripts.claim(limits, epoch=epoch, visibility_ms=visibility_ms, given=given)
        for shard, batch in zip(limits, batches, strict=True):
            if isinstance(batch, ClaimBatch) and batch.foreign:
                report_foreign(shard, batch.foreign)
        return batches

    async def take_notices(self, epoch: int) -> Notices:
        """Take what others posted: which shards have something due sooner than they last told.

        Raises:
            FencedError: the notice board obeys another epoch, or none.

        """
        notices = await self._board.take(epoch)
        self._clock.note(notices.now_ms)
        return notices

    async def start(self, shard: ShardId, card_id: int, claim: int) -> Started | None:
        """Start a claimed card; None when the claim was superseded or the card removed."""
        return await self.batches.start(shard, card_id, claim)

    async def write_back(self, shard: ShardId, card_id: int, claim: int, next_due: int) -> bool:
        """Let a started card wait until ``next_due`` ms; False when the claim was superseded."""
        return await self.batches.write_back(shard, card_id, claim, next_due)

    async def remove_claimed(self, shard: ShardId, card_id: int, claim: int) -> bool:
        """Remove a started card that is not to be polled any more, if the claim still holds."""
        return await self.batches.remove(shard, card_id, claim)

    async def scan(self, shard: ShardId, cursor: int, count: int) -> tuple[int, list[tuple[int, int]]]:
        """Return the next cursor (0 at the end) and about ``count`` (card id, score) pairs, or fewer."""
        try:
            cursor, pairs = await self._redis.execute_command(
                "ZSCAN", keys.shard_due(shard), cursor, "COUNT", min(count, MOST_SCANNED)
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
        """Let the notice board and the shards obey ``epoch`` from now on.

        Raises:
            FencedError: one of them obeys a higher epoch already.

        """
        await self._board.seal(epoch)
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
        shards = self.shards(account_ids, task_types)
        return sum(await self.count_each(shards, overdue_after=overdue_after), ShardCounts())

    async def count_each(
        self, shards: Sequence[ShardId], *, overdue_after: timedelta = timedelta(minutes=1)
    ) -> list[ShardCounts]:
        """Count the cards of each shard; one with a foreign value under its key counts as empty."""
        counts: list[ShardCounts] = []
        for start in range(0, len(shards), _CHUNK):
            chunk = shards[start : start + _CHUNK]
            replies = await self._scripts.count(chunk, overdue_ms=milliseconds(overdue_after))
            for shard, reply in zip(chunk, replies, strict=True):
                if isinstance(reply, Exception):
                    self._pass_over(shard, reply)
                    counts.append(ShardCounts())
                else:
                    counts.append(reply)
        return counts

    async def _change(self, run: _Script, grouped: Mapping[ShardId, Sequence[tuple[int, Any]]]) -> int:
        changed = 0
        for chunk in chunks(grouped, longest=MOST_CHANGED, most=_CHUNK):
            for shard, flags in zip(chunk, await run(chunk), strict=True):
                if isinstance(flags, Exception):
                    self._pass_over(shard, flags)
                else:
                    changed += sum(flags)
        return changed

    def _by_shard(
        self, cards: Mapping[tuple[TaskType, int], Sequence[tuple[int, Any]]]
    ) -> dict[ShardId, list[tuple[int, Any]]]:
        grouped: dict[ShardId, list[tuple[int, Any]]] = defaultdict(list)
        for (task_type, account_id), pairs in cards.items():
            for pair in pairs:
                grouped[self.shard(task_type, account_id, pair[0])].append(pair)
        return grouped

    def _pass_over(self, shard: ShardId, error: Exception) -> None:
        """Report an error of this shard alone; one of Redis as a whole is raised."""
        if is_outage(error):
            raise error
        self._rare.warning("分片的键中有异常数据，已跳过", shard=keys.shard_tag(shard), error=str(error))
