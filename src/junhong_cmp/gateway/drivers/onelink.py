"""China Mobile OneLink, interface version 5 (``docs/reference/carriers/onelink.md``)."""

from collections.abc import Mapping, Sequence
from typing import Final

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.gaps import NoBatches, NoCardList, NoOperationQuery
from junhong_cmp.gateway.drivers.halving import ask_in_halves
from junhong_cmp.gateway.drivers.onelink_answers import (
    check_card,
    realname_answer,
    session_answer,
    status_answer,
    usage_answer,
)
from junhong_cmp.gateway.drivers.onelink_batch import MAX_BATCH, WholeDays, usage_answers
from junhong_cmp.gateway.drivers.onelink_wire import OneLinkCall, OneLinkWire
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.gateway.operations import OperationAnswer, OperationState
from junhong_cmp.gateway.sessions import SessionAnswer
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import HttpTransport

BASIC_INFO_PATH: Final = "/v5/ec/query/sim-basic-info"
USAGE_PATH: Final = "/v5/ec/query/sim-data-usage"
USAGE_BATCH_PATH: Final = "/v5/ec/query/sim-data-usage-monthly/batch"
STATUS_PATH: Final = "/v5/ec/query/sim-status"
REALNAME_PATH: Final = "/v5/ec/query/sim-real-name-status"
SESSION_PATH: Final = "/v5/ec/query/sim-session"
CHANGE_PATH: Final = "/v5/ec/change/sim-status"

STOP: Final = "0"
RESUME: Final = "1"


class OneLinkDriver(NoOperationQuery, NoCardList, NoBatches):
    """A OneLink driver asks China Mobile about cards, and has them stopped and resumed.

    OneLink lists the members of groups only, and a card need not be in any: a difference drawn from
    that would call every other card an orphan.
    """

    def __init__(
        self, transport: HttpTransport, directory: Directory, clock: Clock, tokens: TokenStore
    ) -> None:
        self._wire = OneLinkWire(transport, directory, clock, tokens)
        self._clock = clock

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in this month so far."""
        item = await self._query(account, USAGE_PATH, card)
        return usage_answer(item, card, account.figures_at(self._clock.now()))

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Return the usage of at most 100 cards to the end of yesterday, or an error for each.

        If the carrier refuses all for the sake of some, halves are asked until those are found.
        """
        if len(cards) > MAX_BATCH:
            raise ValueError(f"at most {MAX_BATCH} cards a batch, not {len(cards)}")
        if not cards:
            return {}
        days = WholeDays.before(self._clock.now())

        async def ask(group: Sequence[CardRef]) -> Mapping[int, UsageAnswer | GatewayError]:
            question = {"queryDate": days.month, "iccids": "_".join(card.iccid for card in group)}
            item = await self._wire.ask(account, OneLinkCall(USAGE_BATCH_PATH, question))
            return usage_answers(item, group, days)

        return await ask_in_halves(cards, ask)

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        item = await self._query(account, STATUS_PATH, card)
        return status_answer(item, card, self._clock.now())

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        item = await self._query(account, REALNAME_PATH, card)
        return realname_answer(item, card, self._clock.now())

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Return whether the card is on the network."""
        item = await self._query(account, SESSION_PATH, card)
        return session_answer(item, card, self._clock.now())

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service stopped; sent once."""
        return await self._change(account, card, request_id, STOP)

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service resumed; sent once."""
        return await self._change(account, card, request_id, RESUME)

    async def _query(self, account: GatewayAccount, path: str, card: CardRef) -> Mapping[str, object]:
        number = await self._number_of(account, card)
        return await self._wire.ask(account, OneLinkCall(path, number))

    async def _change(
        self, account: GatewayAccount, card: CardRef, request_id: str, kind: str
    ) -> OperationAnswer:
        question = {**await self._number_of(account, card), "operType": kind}
        item = await self._wire.ask(account, OneLinkCall(CHANGE_PATH, question, change=True))
        check_card(item, card, named=True)
        return OperationAnswer(request_id, card.iccid, OperationState.PENDING, self._clock.now())

    async def _number_of(self, account: GatewayAccount, card: CardRef) -> Mapping[str, str]:
        """Return what the card is asked for by; a phone number only after it has led to this ICCID.

        The answers themselves would not show that the number has gone to another card meanwhile.
        """
        if not card.by_msisdn or card.msisdn is None:
            return {"iccid": card.iccid}
        number = {"msisdn": card.msisdn}
        item = await self._wire.ask(account, OneLinkCall(BASIC_INFO_PATH, number))
        check_card(item, card._replace(msisdn=None), named=True)
        return number
