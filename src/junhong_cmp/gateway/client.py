"""The gateway as its callers see it: accounts and cards in, checked answers out.

Every answer has been checked to be about the card that was asked for. Every call
raises only :class:`~junhong_cmp.gateway.errors.GatewayError` (and cancellation).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.gateway.sessions import SessionAnswer


class GatewayCall(StrEnum):
    """The queries that some carriers answer for many cards at once."""

    USAGE = "usage"
    STATUS = "status"
    REALNAME = "realname"


class GatewayAccount(NamedTuple):
    """A carrier account as far as a call needs it.

    ``base_url`` and ``credential_ref`` of None mean the gateway's defaults. ``usage_unit`` is the unit of
    a usage answer that names none, ``usage_lag`` how late the figures of one are that names no time.
    ``concurrency`` bounds the account's calls in flight, ``batch_size`` the cards of one call, and
    ``change_rest`` is how soon a card may be changed again. ``tz`` and ``billing_day`` tell the carrier's
    local time and where its cycle begins.
    """

    id: int
    code: str
    driver: str = "generic"
    base_url: str | None = None
    credential_ref: str | None = None
    usage_unit: str = "KB"
    concurrency: int = 64
    batch_size: int = 1
    change_rest: timedelta = timedelta(0)
    billing_day: int = 1
    tz: str = "Asia/Shanghai"
    usage_lag: timedelta = timedelta(0)

    def figures_at(self, asked_at: datetime) -> datetime:
        """Return the time a usage figure is of that the carrier gave without one when asked then."""
        return asked_at - self.usage_lag


class CardRef(NamedTuple):
    """A card as a carrier knows it.

    ``by_msisdn`` asks for it by its ``msisdn``, where the carrier can be asked so; the answer still has to
    be about the card with this ``iccid``.
    """

    card_id: int
    iccid: str
    msisdn: str | None = None
    by_msisdn: bool = False


class UsageAnswer(NamedTuple):
    """Data used in the carrier's current cycle, in whole KB (1 KB = 1024 bytes, rounded down)."""

    iccid: str
    used_kb: int
    reading_at: datetime


class StatusAnswer(NamedTuple):
    """The card's state: ``raw`` in the carrier's words, ``status`` in ours or ``unknown``."""

    iccid: str
    raw: str
    status: str
    at: datetime


class RealNameAnswer(NamedTuple):
    """The card's real-name state: not_required, unverified, verified or unknown."""

    iccid: str
    status: str
    at: datetime


class GatewayCalls(Protocol):
    """What can be asked of a carrier; a driver implements just this.

    A call the carrier's interface does not have raises ``NotOffered``. A batch of no cards is answered
    without a call; one larger than the driver offers is a ``ValueError``.
    Queries may be sent twice if a connection breaks. ``stop`` and ``resume`` never are: after a
    ``Transient`` with ``maybe_executed`` ask :meth:`query_operation` before sending again, with the
    same ``request_id``.
    """

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in the carrier's current cycle."""
        ...

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Return an answer or an error for every card, by card id; raises only what concerns all of them."""
        ...

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        ...

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Return a state or an error for every card, by card id; raises only what concerns all of them."""
        ...

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        ...

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Return a state or an error for every card, by card id; raises only what concerns all of them."""
        ...

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Return whether the card is on the network."""
        ...

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        """Return the page of the account's cards at ``cursor``; None asks for the first."""
        ...

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service stopped; AlreadyDone if it was."""
        ...

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service resumed; AlreadyDone if it was running."""
        ...

    async def query_operation(
        self, account: GatewayAccount, card: CardRef, request_id: str
    ) -> OperationAnswer:
        """Return how far the stop or resume sent as ``request_id`` has come."""
        ...


class GatewayClient(GatewayCalls, Protocol):
    """Asks any carrier, with connections that somebody opens and closes."""

    async def open(self) -> None:
        """Make the client usable; opens no connection yet."""
        ...

    async def close(self) -> None:
        """Close every connection; calls in flight fail."""
        ...

    def batch_size(self, account: GatewayAccount, call: GatewayCall) -> int:
        """Return the most cards of the account one such call may ask about; 1 means single calls only."""
        ...
