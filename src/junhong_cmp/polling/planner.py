"""Which shards to claim from, how much from each, and when to look again: no I/O here."""

from collections.abc import Iterable, Sequence

from junhong_cmp.polling.shards import ShardId


class ShardPlanner:
    """A planner remembers when each shard has something due, so that only those are asked.

    What it knows can only be too late: cards are added, written back and hastened by others. So
    every shard is asked again after a while, whatever it last said. All times are milliseconds
    of Redis time.
    """

    def __init__(self, *, recheck_ms: int) -> None:
        self._recheck_ms = recheck_ms
        self._next_look: dict[ShardId, int] = {}

    def plan(self, shards: Sequence[ShardId], allowance: int, now_ms: int) -> dict[ShardId, int]:
        """Share an account's allowance among its shards that are to be asked, longest due first."""
        waiting = sorted((at, shard) for shard in shards if (at := self._next_look.get(shard, 0)) <= now_ms)
        limits: dict[ShardId, int] = {}
        left = allowance
        for index, (_, shard) in enumerate(waiting):
            if left <= 0:
                break
            share = -(-left // (len(waiting) - index))
            limits[shard] = share
            left -= share
        return limits

    def learn(self, shard: ShardId, next_due_ms: int | None, now_ms: int) -> None:
        """Note when a shard's next card is due; None means that it is empty."""
        recheck = now_ms + self._recheck_ms
        self._next_look[shard] = recheck if next_due_ms is None else min(next_due_ms, recheck)

    def next_look(self, shards: Iterable[ShardId], now_ms: int) -> int:
        """Return when the first of the shards is to be asked again."""
        return min((self._next_look.get(shard, 0) for shard in shards), default=now_ms + self._recheck_ms)
