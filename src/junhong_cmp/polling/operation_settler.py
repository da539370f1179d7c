"""The outcome of a stop or resume, written to the operation and to its card in one transaction."""

from dataclasses import dataclass, field

import structlog

from junhong_cmp.cards.model import StopReason
from junhong_cmp.cards.protection import USAGE_REASONS
from junhong_cmp.cards.stop_records import record_resumed, record_stopped
from junhong_cmp.cards.store import load_cards
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.card_changes import CardChanges, change_cards
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.operation_rules import OperationKind, OperationStatus, Verdict
from junhong_cmp.polling.operation_store import OpenOperation, settle_operation

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class OperationSettler:
    """An operation settler writes verdicts down; of two who know the outcome, the first does."""

    pool: Pool
    lifecycle: PollingLifecycleService
    clock: Clock = field(default_factory=SystemClock)

    async def settle(self, operation: OpenOperation, verdict: Verdict) -> bool:
        """Write the verdict down; False when somebody else has settled the operation meanwhile."""
        if verdict.status is not OperationStatus.DONE:
            settled = await settle_operation(self.pool, operation, verdict, self.clock.now())
        else:

            async def work(conn: Conn, changes: CardChanges) -> bool:
                return await self._complete(conn, changes, operation, verdict)

            settled = await change_cards(self.pool, self.lifecycle, work)
        if settled:
            _tell(operation, verdict)
        return settled

    async def _complete(
        self, conn: Conn, changes: CardChanges, operation: OpenOperation, verdict: Verdict
    ) -> bool:
        now, card_id = self.clock.now(), operation.card.card_id
        cards = await load_cards(conn, [card_id])
        changes.touching(cards.values())
        if not await settle_operation(conn, operation, verdict, now):
            return False
        if operation.kind is OperationKind.RESUME:
            await record_resumed(conn, card_id, now)
        elif verdict.by_us or operation.stop_reason not in USAGE_REASONS:
            await record_stopped(conn, card_id, operation.stop_reason, now)
        elif card_id in cards:  # stopped by somebody else: no new cycle may resume it
            known = cards[card_id].stop_reason
            reason = StopReason.CARRIER if known is StopReason.NONE else known
            await record_stopped(conn, card_id, reason, now)
        return True


def _tell(operation: OpenOperation, verdict: Verdict) -> None:
    fields = {"kind": operation.kind.value, "reason": operation.reason, "card_id": operation.card.card_id}
    match verdict.status:
        case OperationStatus.DONE:
            log.info("停复机操作完成", **fields)
        case OperationStatus.FAILED | OperationStatus.UNKNOWN:
            log.warning("停复机操作失败", **fields, status=verdict.status.value, error=verdict.error)
        case _:
            pass  # under way: whoever follows it up counts it
