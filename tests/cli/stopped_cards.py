"""Cards that the rules have stopped for usage in this billing cycle."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from junhong_cmp.cards.model import Card, CarrierAccount, StopReason
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool


async def stop_for_usage(
    pool: Pool,
    account: CarrierAccount,
    cards: Sequence[Card],
    *,
    used_kb: int,
    reason: StopReason = StopReason.OVER_PLAN,
) -> None:
    cycle = billing_cycle(datetime.now(UTC), account.billing_day, ZoneInfo(account.tz))
    ids = [card.id for card in cards]
    await pool.execute(
        "UPDATE iot_card SET status = 'suspended', stop_reason = $2, cycle = $3, cycle_used_kb = $4"
        " WHERE id = ANY ($1::bigint[])",
        ids,
        reason,
        cycle,
        used_kb,
    )
    await pool.execute(
        "INSERT INTO card_operation (card_id, kind, reason, request_id, status, cycle)"
        " SELECT id, 'stop', $2, 'stop-' || id, 'done', $3 FROM unnest($1::bigint[]) AS c (id)",
        ids,
        reason,
        cycle,
    )
