"""Completed tasks leave when their retention is over."""

from junhong_cmp.asynq.broker import Broker

_BATCH = 100


class Janitor:
    """A janitor deletes the completed tasks of one queue whose retention has ended."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def clean(self, queue: str) -> None:
        """Delete everything that has expired, in batches, so that no script runs long."""
        while await self._broker.delete_expired_completed(queue, limit=_BATCH) >= _BATCH:
            pass
