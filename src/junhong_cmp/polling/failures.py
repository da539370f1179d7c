"""Failed polls that are the card's own affair: written down, counted, and backed off from."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from junhong_cmp.cards.model import Card, PollTopic
from junhong_cmp.cards.observations import FailureWrite, Recorded
from junhong_cmp.cards.records import record_failure
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.gateway.errors import CardUnknown, GatewayError
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

log = structlog.stdlib.get_logger(__name__)


class CardFailures:
    """Card failures record what went wrong with a card's poll and tell how often it did in a row."""

    def __init__(self, pool: Pool, stats: PollStats) -> None:
        self._stats = stats
        self._batchers = {
            task_type: _failure_batcher(pool, PollTopic(task_type.kind)) for task_type in POLLING_TASK_TYPES
        }

    async def close(self) -> None:
        """Finish the batches under way."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def record(self, task_type: TaskType, card: Card, error: Exception, observed_at: datetime) -> int:
        """Return the number of failures in a row, this one included."""
        code, message = _describe(error)
        self._stats.count_error(task_type, card.account_id, code, message, card.id)
        write = FailureWrite(
            card_id=card.id,
            account_id=card.account_id,
            observed_at=observed_at,
            not_found=isinstance(error, CardUnknown),
        )
        try:
            recorded = await self._batchers[task_type].submit(write)
        except DATABASE_FAULTS as fault:
            log.warning("轮询失败未能写入数据库", card_id=card.id, error=type(fault).__name__)
            return card.progress(PollTopic(task_type.kind)).fail_count + 1
        return max(1, recorded.fail_count)


def _failure_batcher(pool: Pool, topic: PollTopic) -> MicroBatcher[FailureWrite, Recorded]:
    async def record(conn: Conn, writes: Sequence[FailureWrite]) -> list[Recorded]:
        return await record_failure(conn, topic, writes)

    return recording_batcher(pool, record, f"polling_failure_{topic}")


def _describe(error: Exception) -> tuple[str, str]:
    """Return a code and a text to group errors by; only our own errors' texts are known to be clean."""
    if isinstance(error, GatewayError):
        return error.reason, str(error)
    return "internal", type(error).__name__
