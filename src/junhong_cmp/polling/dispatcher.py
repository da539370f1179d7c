"""Claimed cards on their way into the task queue."""

from collections.abc import Iterable
from typing import Final

from junhong_cmp.asynq.client import BulkEnqueueError, Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import Claim
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload

_CHUNK: Final = 500
"""Claims sent at a time: little enough that making their tasks keeps nothing else waiting."""


class PollDispatcher:
    """A dispatcher enqueues a poll task for each claim, once, however often it has to try.

    The task id names card and claim: enqueued again after a lost reply it conflicts with itself,
    and no archived predecessor can block it. What cannot be enqueued before its claim runs out
    needs no task any more: the card is due again.
    """

    def __init__(self, client: Client, settings: PollingSettings) -> None:
        self._client = client
        self._timeout = settings.turn_timeout
        self._waiting: list[tuple[ShardId, Claim]] = []

    @property
    def has_waiting(self) -> bool:
        """Whether claims wait to be handed over."""
        return bool(self._waiting)

    def add(self, shard: ShardId, claims: Iterable[Claim]) -> None:
        """Take claims over; the next flushes enqueue them."""
        self._waiting += [(shard, claim) for claim in claims]

    async def flush(self, now_ms: int) -> int:
        """Enqueue some hundred of what waits, in its order, and return how many claims were handed over.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; what may be missing waits on.

        """
        sent, later = self._waiting[:_CHUNK], self._waiting[_CHUNK:]
        sent = [item for item in sent if item[1].claim > now_ms]
        self._waiting = sent + later
        if not sent:
            return 0
        try:
            await self._client.enqueue_many([self._task(shard, claim) for shard, claim in sent])
        except BulkEnqueueError as error:
            failed = [outcome for outcome in error.outcomes if isinstance(outcome, Exception)]
            missing = [
                item
                for item, outcome in zip(sent, error.outcomes, strict=True)
                if isinstance(outcome, Exception)
            ]
            self._waiting = missing + later
            raise failed[0] from error
        self._waiting = later
        return len(sent)

    def _task(self, shard: ShardId, claim: Claim) -> tuple[Task, EnqueueOptions]:
        payload = PollPayload(claim.card_id, shard.account_id, claim.claim, claim.due)
        options = EnqueueOptions(
            queue=POLLING_QUEUE,
            task_id=f"{shard.task_type}:{claim.card_id}:{claim.claim}",
            timeout=self._timeout,
            max_retry=1,
        )
        return Task(shard.task_type, payload.encode()), options
