"""What a server is told about groups: how tasks of a group become one, and when."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.task import EnqueueOptions, Task

Aggregated = Task | tuple[Task, EnqueueOptions]
GroupAggregator = Callable[[str, Sequence[Task]], Aggregated | Awaitable[Aggregated]]
"""``(group, tasks) -> task``, sync (it must not block) or async.

The task it returns, with options if it likes, goes to the queue of the group, whatever its options name. An
error keeps the tasks: they are offered again after two minutes. It may be called twice for the same tasks
if a server dies meanwhile, but only one of the results is ever enqueued.
"""


class AggregationError(AsynqError):
    """A group cannot be aggregated so; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """How groups are aggregated: as soon as one of three conditions holds.

    ``grace`` has passed since the last task was added, ``max_delay`` since the oldest one was, or there are
    ``max_size`` of them, which is also the most one call gets. Times count in whole seconds.
    """

    aggregator: GroupAggregator
    grace: timedelta = timedelta(minutes=1)
    max_delay: timedelta | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            AggregationError: a time is below a second or the size below one.

        """
        second = timedelta(seconds=1)
        if self.grace < second or (self.max_delay is not None and self.max_delay < second):
            raise AggregationError("分组的等待时长不能小于 1 秒")
        if self.max_size is not None and self.max_size < 1:
            raise AggregationError("分组的最大数量必须不小于 1")
