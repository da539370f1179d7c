"""Which queue gets how many of the free slots."""

import random
from collections.abc import Collection, Mapping


class QueueOrder:
    """A queue order shares free slots out among the queues that may have work.

    By weight, one slot goes to a queue as often as Asynq's shuffled list would
    name it first, and many slots are split in the same proportion, so that a
    batch does not let one queue take what a single fetch would have spread.
    Strictly, all slots are offered to the highest priority first.
    """

    def __init__(self, priorities: Mapping[str, int], *, strict: bool) -> None:
        self._priorities = dict(sorted(priorities.items(), key=lambda entry: -entry[1]))
        self._strict = strict

    def shares(
        self, ready: Collection[str], free: int, rooms: Mapping[str, int] | None = None
    ) -> list[tuple[str, int]]:
        """Return ``(queue, count)`` pairs in the order to ask; counts are positive and sum to ``free``.

        A strict order names only the first queue: the next is asked once that one
        is known to be empty. ``rooms`` limits the queues that have any to so many
        tasks, and leaves out all others; slots left over are for the next round.
        """
        if rooms is None:
            return self._split(ready, free)
        plan = self._split([name for name in ready if name in rooms], free)
        return [(name, min(count, rooms[name])) for name, count in plan]

    def _split(self, ready: Collection[str], free: int) -> list[tuple[str, int]]:
        names = [name for name in self._priorities if name in ready]
        if not names or free <= 0:
            return []
        if self._strict or len(names) == 1:
            return [(names[0], free)]
        weights = [self._priorities[name] for name in names]
        total = sum(weights)
        counts = [free * weight // total for weight in weights]
        for index in random.choices(range(len(names)), weights, k=free - sum(counts)):
            counts[index] += 1
        plan = [(name, count) for name, count in zip(names, counts, strict=True) if count]
        random.shuffle(plan)
        return plan
