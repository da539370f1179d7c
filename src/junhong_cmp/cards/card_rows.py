"""Rows of ``iot_card`` as cards."""

from collections.abc import Mapping
from typing import Final

import asyncpg

from junhong_cmp.cards.model import Card, CardStatus, PollProgress, PollTopic, RealNameStatus, StopReason

# Every poll loads its card. A look-up costs a tenth of calling an enumeration or formatting a member.
_STATUSES: Final[Mapping[str, CardStatus]] = {one.value: one for one in CardStatus}
_STOP_REASONS: Final[Mapping[str, StopReason]] = {one.value: one for one in StopReason}
_REAL_NAMES: Final[Mapping[str, RealNameStatus]] = {one.value: one for one in RealNameStatus}
_PROGRESS: Final[Mapping[PollTopic, tuple[str, str, str]]] = {
    topic: (f"{topic}_attempted_at", f"{topic}_succeeded_at", f"{topic}_fail_count") for topic in PollTopic
}


def card_from_row(row: asyncpg.Record) -> Card:
    """Build a card from a row that has all columns of the table."""
    return Card(
        id=row["id"],
        iccid=row["iccid"],
        iccid19=row["iccid19"],
        msisdn=row["msisdn"],
        imsi=row["imsi"],
        imei=row["imei"],
        account_id=row["account_id"],
        batch_no=row["batch_no"],
        category=row["category"],
        plan=row["plan"],
        pool_id=row["pool_id"],
        carrier_status_raw=row["carrier_status_raw"],
        status=_STATUSES[row["status"]],
        status_changed_at=row["status_changed_at"],
        stop_reason=_STOP_REASONS[row["stop_reason"]],
        real_name_required=row["real_name_required"],
        real_name_status=_REAL_NAMES[row["real_name_status"]],
        network_on=row["network_on"],
        polling_enabled=row["polling_enabled"],
        orphan=row["orphan"],
        activated_at=row["activated_at"],
        expires_at=row["expires_at"],
        threshold_kb=row["threshold_kb"],
        cycle=row["cycle"],
        cycle_used_kb=row["cycle_used_kb"],
        last_reading_kb=row["last_reading_kb"],
        last_reading_at=row["last_reading_at"],
        carddata=_progress(row, PollTopic.CARDDATA),
        cardstatus=_progress(row, PollTopic.CARDSTATUS),
        realname=_progress(row, PollTopic.REALNAME),
        not_found_count=row["not_found_count"],
        version=row["version"],
    )


def _progress(row: asyncpg.Record, topic: PollTopic) -> PollProgress:
    attempted_at, succeeded_at, fail_count = _PROGRESS[topic]
    return PollProgress(row[attempted_at], row[succeeded_at], row[fail_count])
