"""Which shards to claim from, how much from each, and when to look again: no I/O here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from junhong_cmp.polling.fair_shares import fair_shares
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import TaskType

MOST_A_SHARD: Final = 250
"""Cards claimed by one script: it must not hold Redis for more than a few milliseconds."""


class _Group:
    """The shards of one account and task type, and when each is to be looked at."""

    __slots__ = ("_earliest", "_looks", "_shards")

    def __init__(self, shards: Sequence[ShardId]) -> None:
        self._shards = shards
        self._looks = [0] * len(shards)  # nothing is known of them: look at once
        self._earliest: int | None = 0

    @property
    def earliest(self) -> int:
        if self._earliest is None:
            self._earliest = min(self._looks)
        return self._earliest

    def __contains__(self, shard: ShardId) -> bool:
        return shard.number < len(self._shards)

    def look_at(self, number: int, at: int) -> None:
        self._looks[number] = at
        self._earliest = None

    def look_no_later(self, number: int, at: int) -> None:
        if at < self._looks[number]:
            self.look_at(number, at)

    def due(self, now_ms: int) -> list[ShardId]:
        """Return the shards to be looked at by now, longest due first."""
        waiting = sorted((at, number) for number, at in enumerate(self._looks) if at <= now_ms)
        return [self._shards[number] for _, number in waiting]


class ShardPlanner:
    """A planner remembers when each shard has something due, so that only those are asked.

    A shard tells at each claim when its next card is due, and notices tell what others let be due sooner.
    Should a notice get lost, what is known here is too late: so every shard is asked again after a while,
    whatever it last said. All times are milliseconds of Redis time.
    """

    def __init__(
        self, shards: Callable[[tuple[int], tuple[TaskType]], Sequence[ShardId]], *, recheck_ms: int
    ) -> None:
        self._shards = shards
        self._recheck_ms = recheck_ms
        self._groups: dict[tuple[int, TaskType], _Group] = {}
        self._turn = 0

    def plan(
        self, account_id: int, sizes: Mapping[TaskType, int], allowance: int, now_ms: int
    ) -> dict[ShardId, int]:
        """Share an account's allowance of calls among its shards; return how many cards to claim of each.

        ``sizes`` tells how many cards of a task type one call takes. Every type gets as many calls, if it
        wants that many; within one the longest due come first.
        """
        due = [self._group(account_id, task_type).due(now_ms) for task_type in sizes]
        self._turn += 1
        mosts = [_most_a_shard(size) for size in sizes.values()]
        wants = [
            len(shards) * -(-most // size)
            for shards, most, size in zip(due, mosts, sizes.values(), strict=True)
        ]
        shares = fair_shares(allowance, wants, self._turn)
        limits: dict[ShardId, int] = {}
        for shards, share, most, size in zip(due, shares, mosts, sizes.values(), strict=True):
            left = share  # calls
            for index, shard in enumerate(shards):
                if left <= 0:
                    break
                calls = -(-left // (len(shards) - index))
                limits[shard] = min(calls * size, most)
                left -= calls
        return limits

    def learn(self, shard: ShardId, next_due_ms: int | None, now_ms: int, *, gather_ms: int = 0) -> None:
        """Note what a shard told: when its next card is due; None means that it is empty.

        It is not asked again before ``gather_ms``, so that cards due one after the other go together.
        """
        recheck = now_ms + self._recheck_ms
        at = recheck if next_due_ms is None else min(max(next_due_ms, now_ms + gather_ms), recheck)
        self._group(shard.account_id, shard.task_type).look_at(shard.number, at)

    def hear(self, shard: ShardId, due_ms: int) -> None:
        """Note what somebody else told of a shard: something is due there by then."""
        group = self._groups.get((shard.account_id, shard.task_type))
        if group is not None and shard in group:  # of any other shard nothing is known: it is asked anyway
            group.look_no_later(shard.number, due_ms)

    def forget(self) -> None:
        """Know nothing of any shard any more: each is asked at the next opportunity."""
        self._groups.clear()

    def next_look(self, account_id: int, task_types: Iterable[TaskType]) -> int:
        """Return when the first shard of the task types, of which there is one at least, is to be asked."""
        return min(self._group(account_id, task_type).earliest for task_type in task_types)

    def _group(self, account_id: int, task_type: TaskType) -> _Group:
        group = self._groups.get((account_id, task_type))
        if group is None:
            group = _Group(self._shards((account_id,), (task_type,)))
            self._groups[account_id, task_type] = group
        return group


def _most_a_shard(size: int) -> int:
    """Return how many cards to claim of a shard at most, in whole calls of ``size`` cards."""
    return max(MOST_A_SHARD - MOST_A_SHARD % size, min(size, MOST_A_SHARD))
