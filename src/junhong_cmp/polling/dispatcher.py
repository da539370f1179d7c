"""Claimed cards on their way into the task queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from junhong_cmp.asynq.client import BulkEnqueueError, Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.batch_payload import BatchPayload
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import Claim
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload

_CHUNK: Final = 500
"""Tasks sent at a time: little enough that making them keeps nothing else waiting."""


@dataclass(frozen=True, slots=True)
class _Handover:
    """The cards of one task: claimed together, so that all have one claim."""

    shard: ShardId
    claims: Sequence[Claim]

    @property
    def claim(self) -> int:
        return self.claims[0].claim


class PollDispatcher:
    """A dispatcher enqueues a poll task for each claim or batch of claims, once, however often it has to try.

    The task id names card and claim, and how many more go with it: enqueued again after a lost reply it
    conflicts with itself, and no archived predecessor can block it. What cannot be enqueued before its
    claim runs out needs no task any more: the cards are due again.
    """

    def __init__(self, client: Client, settings: PollingSettings) -> None:
        self._client = client
        self._timeout = settings.turn_timeout
        self._waiting: list[_Handover] = []

    @property
    def has_waiting(self) -> bool:
        """Whether claims wait to be handed over."""
        return bool(self._waiting)

    def add(self, shard: ShardId, claims: Sequence[Claim], *, batch_size: int = 1) -> int:
        """Take claims of one script over, for tasks of up to ``batch_size`` cards; return how many tasks.

        The next flushes enqueue them. Which cards go together is settled here, for however often it is tried.
        """
        parts = [claims[start : start + batch_size] for start in range(0, len(claims), batch_size)]
        self._waiting += [_Handover(shard, part) for part in parts]
        return len(parts)

    async def flush(self, now_ms: int) -> int:
        """Enqueue some hundred of what waits, in its order, and return how many tasks were handed over.

        Raises:
            redis.exceptions.RedisError, OSError: Redis failed; what may be missing waits on.

        """
        sent, later = self._waiting[:_CHUNK], self._waiting[_CHUNK:]
        sent = [item for item in sent if item.claim > now_ms]
        self._waiting = sent + later
        if not sent:
            return 0
        try:
            await self._client.enqueue_many([self._task(item) for item in sent])
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

    def _task(self, item: _Handover) -> tuple[Task, EnqueueOptions]:
        shard, first = item.shard, item.claims[0]
        task_id = f"{shard.task_type}:{first.card_id}:{first.claim}"
        polls = [PollPayload(one.card_id, shard.account_id, one.claim, one.due) for one in item.claims]
        if len(polls) == 1:
            payload = polls[0].encode()
        else:
            task_id += f":{len(polls)}"
            payload = BatchPayload(shard.account_id, polls).encode()
        options = EnqueueOptions(queue=POLLING_QUEUE, task_id=task_id, timeout=self._timeout, max_retry=1)
        return Task(shard.task_type, payload), options
