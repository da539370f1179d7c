"""China Unicom's platform for connected things: ``docs/reference/carriers/unicom.md``."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.answers import check_card
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    GatewayCall,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.gaps import NoCardList, NoOperationQuery, NoSessionQuery
from junhong_cmp.gateway.drivers.halving import ask_in_halves
from junhong_cmp.gateway.drivers.unicom_answers import (
    Fields,
    read_data,
    realname_of,
    split_terminals,
    status_of,
    usage_of,
)
from junhong_cmp.gateway.drivers.unicom_codes import ACTIVATED, DEACTIVATED
from junhong_cmp.gateway.drivers.unicom_signing import access_of, new_serial, signed_body
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.gateway.http_refusals import refusal_by_status
from junhong_cmp.gateway.operations import OperationAnswer, OperationState
from junhong_cmp.gateway.transport import HttpTransport

MAX_BATCH: Final = 50
"""The most cards in one question."""
DETAILS_PATH: Final = "/wsGetTerminalDetails/V1/1Main/vV1.1"
EDIT_PATH: Final = "/wsEditTerminal/V1/1Main/vV1.1"
STATUS_CHANGE: Final = "3"
"""The kind of change that sets a card's state."""

A = TypeVar("A")
_Read = Callable[[Fields, CardRef, datetime], A]


class UnicomDriver(NoCardList, NoOperationQuery, NoSessionQuery):
    """A Unicom driver reads all it knows of cards from their details, up to 50 cards at once.

    Answers carry no time of their own: what they say counts from when they were asked for.
    """

    def __init__(self, transport: HttpTransport, directory: Directory, clock: Clock) -> None:
        self._transport = transport
        self._directory = directory
        self._clock = clock

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in the cycle from the 27th to the 26th."""
        return await self._one(account, card, GatewayCall.USAGE, _usage_reader(account))

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Return a reading or an error for every card."""
        return await self._many(account, cards, GatewayCall.USAGE, _usage_reader(account))

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        return await self._one(account, card, GatewayCall.STATUS, status_of)

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Return a state or an error for every card."""
        return await self._many(account, cards, GatewayCall.STATUS, status_of)

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        return await self._one(account, card, GatewayCall.REALNAME, realname_of)

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Return a state or an error for every card."""
        return await self._many(account, cards, GatewayCall.REALNAME, realname_of)

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card deactivated; sent once."""
        return await self._change(account, card, DEACTIVATED, request_id)

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card activated; sent once."""
        return await self._change(account, card, ACTIVATED, request_id)

    async def _one(self, account: GatewayAccount, card: CardRef, call: GatewayCall, read: _Read[A]) -> A:
        outcome = (await self._details(account, [card], call, read))[card.card_id]
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome

    async def _many(
        self, account: GatewayAccount, cards: Sequence[CardRef], call: GatewayCall, read: _Read[A]
    ) -> dict[int, A | GatewayError]:
        if len(cards) > MAX_BATCH:
            raise ValueError(f"at most {MAX_BATCH} cards a batch, not {len(cards)}")
        if not cards:
            return {}
        return await ask_in_halves(cards, lambda group: self._details(account, group, call, read))

    async def _details(
        self, account: GatewayAccount, cards: Sequence[CardRef], call: GatewayCall, read: _Read[A]
    ) -> dict[int, A | GatewayError]:
        """Ask for details; the message's number begins with what they are wanted for."""
        asked_at = self._clock.now()
        question = {"iccids": [card.iccid for card in cards]}
        message_id = f"{call}-{new_serial(asked_at)}"
        data = await self._ask(account, DETAILS_PATH, question, message_id=message_id)
        return split_terminals(data, cards, lambda terminal, card: read(terminal, card, asked_at))

    async def _change(
        self, account: GatewayAccount, card: CardRef, target: str, request_id: str
    ) -> OperationAnswer:
        """Set a card's state; the platform answers when it is done."""
        change = {
            "asynchronous": "0",
            "iccid": card.iccid,
            "changeType": STATUS_CHANGE,
            "targetValue": target,
        }
        data = await self._ask(account, EDIT_PATH, change, message_id=request_id, changing=True)
        check_card(data, card)
        return OperationAnswer(request_id, card.iccid, OperationState.DONE, self._clock.now())

    async def _ask(
        self,
        account: GatewayAccount,
        path: str,
        question: Mapping[str, object],
        *,
        message_id: str,
        changing: bool = False,
    ) -> Fields:
        route = self._directory.route_of(account)
        access = access_of(route.credential)
        answer = await self._transport.post(
            route.endpoint(path),
            lambda: signed_body(access, message_id, question, self._clock.now()),
            dict,
            resend=not changing,
        )
        if answer.status != HTTPStatus.OK:
            raise refusal_by_status(answer, self._clock.now())
        return read_data(answer.body, message_id, changing=changing)


def _usage_reader(account: GatewayAccount) -> _Read[UsageAnswer]:
    """Return what reads a usage figure, of a time as long before the question as the account's lag."""
    return lambda terminal, card, asked_at: usage_of(terminal, card, account.figures_at(asked_at))
