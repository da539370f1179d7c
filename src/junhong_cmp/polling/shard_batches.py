"""Start, write-back and removal of cards, gathered into one round trip for all shards."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.polling.notice_board import NoticeBoard
from junhong_cmp.polling.server_clock import ServerClock
from junhong_cmp.polling.shard_scripts import ShardScripts, Started
from junhong_cmp.polling.shards import ShardId

R = TypeVar("R")

_MOST: Final = 250
"""Cards of a batch; if all wait in one shard, one script must not hold Redis for long."""


class _Request(NamedTuple):
    """One card's part of a batch: its shard and the arguments of the script."""

    shard: ShardId
    row: tuple[Any, ...]


class ShardBatches:
    """Shard batches let requests gather while an earlier batch runs, then send them together.

    A Redis fault is raised to each caller of the batch; a script failing on one shard reaches the
    callers of that shard only. What is written back with a due time soon is posted for the leader.
    Who has a batch of its own already sends it at once, by ``start_all`` and its like.
    """

    def __init__(
        self, scripts: ShardScripts, board: NoticeBoard, clock: ServerClock, *, timeout_ms: int
    ) -> None:
        self._scripts = scripts
        self._board = board
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._starts: MicroBatcher[_Request, Started | None] = MicroBatcher(
            self._flush_starts, max_size=_MOST, name="polling_start"
        )
        self._write_backs: MicroBatcher[_Request, bool] = MicroBatcher(
            self._flush_write_backs, max_size=_MOST, name="polling_write_back"
        )
        self._removals: MicroBatcher[_Request, bool] = MicroBatcher(
            self._flush_removals, max_size=_MOST, name="polling_remove"
        )

    async def close(self) -> None:
        """Finish the batches under way."""
        for batcher in (self._starts, self._write_backs, self._removals):
            await batcher.close()

    async def start(self, shard: ShardId, card_id: int, claim: int) -> Started | None:
        """Start a claimed card; None when the claim was superseded or the card removed."""
        return await self._starts.submit(_Request(shard, (card_id, claim)))

    async def write_back(self, shard: ShardId, card_id: int, claim: int, next_due: int) -> bool:
        """Let a started card wait until ``next_due`` ms; False when the claim was superseded."""
        return await self._write_backs.submit(_Request(shard, (card_id, claim, next_due)))

    async def remove(self, shard: ShardId, card_id: int, claim: int) -> bool:
        """Remove a started card; False when the claim was superseded."""
        return await self._removals.submit(_Request(shard, (card_id, claim)))

    async def start_all(
        self, cards: Sequence[tuple[ShardId, int, int]]
    ) -> Sequence[Started | Exception | None]:
        """Start cards by (shard, card, claim) at once, each with its own outcome as in ``start``."""
        return await self._flush_starts([_Request(shard, (card, claim)) for shard, card, claim in cards])

    async def write_back_all(
        self, cards: Sequence[tuple[ShardId, int, int, int]]
    ) -> Sequence[bool | Exception]:
        """Write cards back by (shard, card, claim, next due) at once, each as in ``write_back``."""
        requests = [_Request(shard, (card, claim, due)) for shard, card, claim, due in cards]
        return await self._flush_write_backs(requests) if requests else []

    async def remove_all(self, cards: Sequence[tuple[ShardId, int, int]]) -> Sequence[bool | Exception]:
        """Remove started cards by (shard, card, claim) at once, each as in ``remove``."""
        requests = [_Request(shard, (card, claim)) for shard, card, claim in cards]
        return await self._flush_removals(requests) if requests else []

    async def _flush_starts(self, requests: Sequence[_Request]) -> Sequence[Started | Exception | None]:
        async def run(shards: Mapping[ShardId, Sequence[Any]]) -> list[list[Started | None] | Exception]:
            return await self._scripts.start(shards, timeout_ms=self._timeout_ms)

        results = await _by_shard(requests, run)
        for result in results:
            if isinstance(result, Started):
                self._clock.note(result.now_ms)
                break
        return results

    async def _flush_write_backs(self, requests: Sequence[_Request]) -> Sequence[bool | Exception]:
        results = await _by_shard(requests, self._scripts.write_back)
        earliest: dict[ShardId, int] = {}
        for request, written in zip(requests, results, strict=True):
            if written is True:
                due = request.row[2]
                earliest[request.shard] = min(due, earliest.get(request.shard, due))
        await self._board.post(earliest)
        return results

    async def _flush_removals(self, requests: Sequence[_Request]) -> Sequence[bool | Exception]:
        return await _by_shard(requests, self._scripts.remove)


async def _by_shard(
    requests: Sequence[_Request],
    run: Callable[[Mapping[ShardId, Sequence[Any]]], Awaitable[list[list[R] | Exception]]],
) -> list[R | Exception]:
    """Run one script a shard and give each request its own part of the reply, in request order."""
    places: dict[ShardId, list[int]] = defaultdict(list)
    rows: dict[ShardId, list[tuple[Any, ...]]] = defaultdict(list)
    for place, request in enumerate(requests):
        places[request.shard].append(place)
        rows[request.shard].append(request.row)
    try:
        replies = await run(rows)
    except FAULTS as error:  # told to each caller: raising would have the batch halved and tried again
        return [error] * len(requests)
    results: dict[int, R | Exception] = {}
    for shard_places, reply in zip(places.values(), replies, strict=True):
        for index, place in enumerate(shard_places):
            results[place] = reply if isinstance(reply, Exception) else reply[index]
    return [results[place] for place in range(len(requests))]
