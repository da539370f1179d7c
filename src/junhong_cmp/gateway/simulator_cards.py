"""The cards of the simulated carrier: every one is computed from its number, so there can be millions."""

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from typing import Final

from junhong_cmp.gateway.operations import OperationState

STOPPED: Final = "suspended"
RUNNING: Final = "active"
RAW_STATUS: Final = {"ready": "1 待激活", "active": "2 已激活", "suspended": "4 停机", "testing": "6 可测试"}
REALNAME_STATUSES: Final = ("verified", "unverified", "not_required")

_CARRIER_TIME: Final = timezone(timedelta(hours=8))
_HIGHEST_KB_PER_S: Final = 32
_PRIVATE_NET: Final = int(IPv4Address("10.0.0.0"))
_PRIVATE_SIZE: Final = 2**24
_REMEMBERED_OPERATIONS: Final = 100_000
_ICCID19: Final = 19


def expected_usage_kb(iccid: str, at: datetime, seed: int = 0, *, billing_day: int = 1) -> int:
    """Return what the simulated carrier answers at an instant, to the millisecond, in KB.

    Each card moves a constant 1 to 32 KB a second from the first instant of the billing day (1 to 28, in
    UTC+8), where it begins again at 0. The 19- and 20-character forms of an ICCID are one card.
    """
    local = at.astimezone(_CARRIER_TIME)
    in_start_month = local if local.day >= billing_day else local.replace(day=1) - timedelta(days=1)
    cycle_start = in_start_month.replace(day=billing_day, hour=0, minute=0, second=0, microsecond=0)
    elapsed_ms = (local - cycle_start) // timedelta(milliseconds=1)
    kb_per_s = 1 + _draw(iccid, seed, "rate") % _HIGHEST_KB_PER_S
    return elapsed_ms * kb_per_s // 1000


@dataclass(frozen=True, slots=True)
class Operation:
    """A stop or resume; it has its effect, and is done, at ``done_at``."""

    request_id: str
    iccid: str
    target: str
    done_at: datetime

    def state(self, now: datetime) -> OperationState:
        """Return how far it has come."""
        return OperationState.DONE if now >= self.done_at else OperationState.PENDING


@dataclass(frozen=True, slots=True)
class Session:
    """A card's data session."""

    ip: str
    since: datetime


class CardBook:
    """A card book knows the state of every card, and remembers only what was changed.

    ``cards`` are the numbers on its list; it answers for all others as well.
    """

    def __init__(
        self,
        *,
        seed: int,
        unknown_rate: float,
        operation_delay: timedelta,
        cards: Collection[str] = (),
    ) -> None:
        self._seed = seed
        self._unknown_per_mille = round(unknown_rate * 1000)
        self._operation_delay = operation_delay
        self._operations: OrderedDict[str, Operation] = OrderedDict()
        self._latest: dict[str, Operation] = {}
        self._listed = sorted({iccid for iccid in cards if self.knows(iccid)})

    def knows(self, iccid: str) -> bool:
        """Tell whether the carrier has this card; a fixed share of all numbers is unknown to it."""
        return _draw(iccid, self._seed, "known") % 1000 >= self._unknown_per_mille

    def usage_kb(self, iccid: str, now: datetime, *, billing_day: int = 1) -> int:
        """Return the usage in the current cycle, which begins on the billing day."""
        return expected_usage_kb(iccid, now, self._seed, billing_day=billing_day)

    def status(self, iccid: str, now: datetime) -> str:
        """Return the card's state: as it was drawn, or as the last finished operation left it."""
        latest = self._latest.get(iccid[:_ICCID19])
        if latest is not None and latest.state(now) is OperationState.DONE:
            return latest.target
        drawn = _draw(iccid, self._seed, "status") % 100
        if drawn < 90:  # noqa: PLR2004 - nine in ten cards are active, the rest is spread over the other states
            return RUNNING
        return ("ready", STOPPED, "testing")[drawn % 3]

    def real_name(self, iccid: str) -> str:
        """Return the card's real-name state."""
        return REALNAME_STATUSES[_draw(iccid, self._seed, "real-name") % len(REALNAME_STATUSES)]

    def session(self, iccid: str, now: datetime) -> Session | None:
        """Return the session of a card on the network: two in three of those that run, by the hour."""
        hour = now.astimezone(_CARRIER_TIME).replace(minute=0, second=0, microsecond=0)
        drawn = _draw(iccid, self._seed, f"session:{hour.isoformat()}")
        if self.status(iccid, now) != RUNNING or drawn % 3 == 0:
            return None
        return Session(ip=str(IPv4Address(_PRIVATE_NET + drawn % _PRIVATE_SIZE)), since=hour)

    def list_after(self, iccid: str, limit: int) -> Sequence[str]:
        """Return the next numbers of the list after one of them; an empty text asks for the first."""
        begin = bisect_right(self._listed, iccid)
        return self._listed[begin : begin + limit]

    def operate(self, iccid: str, target: str, request_id: str, now: datetime) -> Operation | None:
        """Begin an operation, or return the one this request id began; None if there is nothing to do."""
        known = self._operations.get(request_id)
        if known is not None:
            return known
        if self.status(iccid, now) == target:
            return None
        operation = Operation(request_id, iccid, target, now + self._operation_delay)
        self._remember(operation)
        return operation

    def operation(self, request_id: str) -> Operation | None:
        """Return the operation a request id began, if it is not too long ago."""
        return self._operations.get(request_id)

    def _remember(self, operation: Operation) -> None:
        self._operations[operation.request_id] = operation
        self._latest[operation.iccid[:_ICCID19]] = operation
        if len(self._operations) > _REMEMBERED_OPERATIONS:
            self._operations.popitem(last=False)


def _draw(iccid: str, seed: int, purpose: str) -> int:
    """Return a number that depends on nothing but the arguments, the same in every process."""
    text = f"{seed}:{purpose}:{iccid[:_ICCID19].upper()}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
