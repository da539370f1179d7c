"""Usage of up to 100 cards in one OneLink call: to the end of a day, not to the moment."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from junhong_cmp.gateway.batch_items import answers_by_card
from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.onelink_answers import check_card, usage_answer
from junhong_cmp.gateway.drivers.onelink_refusals import OK, code_of, refusal_of
from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.errors import BadResponse, GatewayError

MAX_BATCH: Final = 100
"""The most cards in one batch query."""

_DATE: Final = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})(?![0-9])")


@dataclass(frozen=True, slots=True)
class WholeDays:
    """The days a batch covers: the month so far, to the end of ``last``, the carrier's yesterday.

    On the first of a month that is the whole month before, so its total is read once more when
    it is complete.
    """

    last: date

    @classmethod
    def before(cls, now: datetime) -> "WholeDays":
        """Return the days a question asked at ``now`` is about."""
        return cls(now.astimezone(CARRIER_TIME).date() - timedelta(days=1))

    @property
    def month(self) -> str:
        """The month as the carrier wants it named."""
        return f"{self.last:%Y%m}"

    def end(self, deadline: object) -> datetime:
        """Return the last instant covered, by the carrier's own ``deadLine`` if it gives a readable one.

        Raises:
            BadResponse: the carrier's answer is about another month.

        """
        told = _date_of(deadline)
        if told is not None and (told.year, told.month) != (self.last.year, self.last.month):
            raise BadResponse("网关响应无效：OneLink 批量用量不是所查月份的")
        day = self.last if told is None else min(told, self.last)
        midnight = datetime.combine(day + timedelta(days=1), time(), CARRIER_TIME)
        return (midnight - timedelta(milliseconds=1)).astimezone(UTC)


def usage_answers(
    item: Mapping[str, object], cards: Sequence[CardRef], days: WholeDays
) -> dict[int, UsageAnswer | GatewayError]:
    """Return an answer or an error for each card; one bad entry never spoils its neighbours.

    Raises:
        BadResponse: there is no list of entries, or none that names a card.
        WrongCard: no entry is about a card that was asked about.

    """
    entries = item.get("dataAmountList")
    if not isinstance(entries, list):
        raise BadResponse("网关响应无效：批量应答缺少 dataAmountList")
    at = days.end(item.get("deadLine"))

    def read(entry: Mapping[str, object], card: CardRef) -> UsageAnswer:
        check_card(entry, card, named=True)
        if "status" in entry and (code := code_of(entry)) != OK:
            raise refusal_of(code, entry.get("message"), change=False)
        return usage_answer(entry, card, at)

    return answers_by_card(entries, cards, read, BadResponse("批量应答中没有此卡"))


def _date_of(text: object) -> date | None:
    found = _DATE.match(text.strip()) if isinstance(text, str) else None
    try:
        return None if found is None else date(*(int(part) for part in found.groups()))
    except ValueError:
        return None
