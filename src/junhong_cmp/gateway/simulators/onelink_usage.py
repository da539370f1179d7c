"""Usage of many cards in one call, as OneLink keeps it: by the month, to the end of a day."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.simulator_cards import CardBook

_MONTHS: Final = 6


class UsageBatch:
    """A usage batch reads a month's totals of many cards from the card book."""

    def __init__(self, book: CardBook) -> None:
        self._book = book

    def item(self, iccids: Sequence[str], month: str, now: datetime) -> Mapping[str, object] | None:
        """Return the totals of a month, to yesterday if it is this one; None if it is not of the last six."""
        midnight = now.astimezone(CARRIER_TIME).replace(hour=0, minute=0, second=0, microsecond=0)
        first = midnight.replace(day=1)
        for _ in range(_MONTHS):
            if f"{first:%Y%m}" == month:
                begun = midnight > first
                end = min(midnight, _following(first)) - timedelta(milliseconds=1)
                entries = [self._entry(iccid, end if begun else None) for iccid in iccids]
                return {"deadLine": f"{end:%Y%m%d}" if begun else " ", "dataAmountList": entries}
            first = (first - timedelta(days=1)).replace(day=1)
        return None

    def _entry(self, iccid: str, end: datetime | None) -> Mapping[str, object]:
        if not self._book.knows(iccid):
            return {"iccid": iccid, "status": "11011", "message": "卡号不存在"}
        amount = " " if end is None else str(self._book.usage_kb(iccid, end))
        return {"iccid": iccid, "dataAmount": amount, "apnDataAmountList": []}


def _following(first: datetime) -> datetime:
    return (first + timedelta(days=31)).replace(day=1)
