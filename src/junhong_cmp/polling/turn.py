"""The state of one poll under way, and the ways it can end."""

import random
from datetime import timedelta
from typing import Final, NamedTuple

from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.shard_scripts import Started
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.stats import PollOutcome
from junhong_cmp.polling.tasks import PollPayload, TaskType


class Turn(NamedTuple):
    """A turn is one started poll; it tells Redis time by the monotonic clock since its start."""

    task_type: TaskType
    payload: PollPayload
    shard: ShardId
    started: Started
    began: float

    @property
    def lag_ms(self) -> int | None:
        """How long after its due time the poll started; None when the due time is unknown."""
        return max(0, self.started.now_ms - self.payload.due) if self.payload.due else None

    def now_ms(self, monotonic: float) -> int:
        """Return the Redis time at a reading of the monotonic clock, so worker clocks don't matter."""
        return self.started.now_ms + int((monotonic - self.began) * 1000)


class Ending(NamedTuple):
    """How a turn ends: what is counted, and when the card is next due (None: it is removed)."""

    outcome: PollOutcome | None
    next_due: int | None


REMOVED: Final = Ending(None, None)
"""The card is not to be polled any more."""


def put_back(now_ms: int, delay: timedelta) -> Ending:
    """End a turn that could not be taken for no fault of the card: due a little later, spread out."""
    delay_ms = max(1, milliseconds(delay))
    return Ending(PollOutcome.THROTTLED, now_ms + delay_ms + random.randrange(delay_ms))
