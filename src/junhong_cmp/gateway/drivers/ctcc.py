"""China Telecom's platform for connected things (CMP): ``docs/reference/carriers/ctcc.md``."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers import ctcc_answers as answers
from junhong_cmp.gateway.drivers.ctcc_body import CtccReply, read_reply
from junhong_cmp.gateway.drivers.ctcc_codes import NO_REAL_NAME, OK, RESUME, STOP, refusal_of
from junhong_cmp.gateway.drivers.ctcc_fields import object_of
from junhong_cmp.gateway.drivers.ctcc_numbers import echoed_number, is_about, local_number
from junhong_cmp.gateway.drivers.ctcc_signing import access_of, signed_query
from junhong_cmp.gateway.drivers.gaps import NoBatches, NoOperationQuery
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, Transient, WrongCard
from junhong_cmp.gateway.http_refusals import refusal_by_status
from junhong_cmp.gateway.operations import OperationAnswer, OperationState
from junhong_cmp.gateway.sessions import SessionAnswer
from junhong_cmp.gateway.transport import HttpTransport

QUERY_PATH: Final = "/query.do"

_ICCID_CHARS: Final = 19
_REMEMBERED_NUMBERS: Final = 100_000


class CtccDriver(NoBatches, NoOperationQuery):
    """A CTCC driver asks by ICCID where the platform can be asked so, else by the number the ICCID leads to.

    The platform's answers carry no time of their own: what they say counts from when they were asked for.
    """

    def __init__(self, transport: HttpTransport, directory: Directory, clock: Clock) -> None:
        self._transport = transport
        self._directory = directory
        self._clock = clock
        self._numbers: OrderedDict[tuple[int, str], str] = OrderedDict()

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in this calendar month."""
        asked_at = self._clock.now()
        reply = await self._ask(account, "queryTraffic", {"iccid": _iccid(card), "needDtl": "0"})
        await self._check_number(account, card, echoed_number(reply.fields, "number"))
        used_kb = answers.used_kb(reply.fields)
        return UsageAnswer(iccid=card.iccid, used_kb=used_kb, reading_at=account.figures_at(asked_at))

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's main state."""
        asked_at = self._clock.now()
        reply = await self._ask(account, "queryCardMainStatus", {"iccid": _iccid(card)})
        await self._check_number(account, card, echoed_number(reply.fields, "number"))
        raw, status = answers.status_of(reply.fields)
        return StatusAnswer(iccid=card.iccid, raw=raw, status=status, at=asked_at)

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return whether somebody is registered for the card."""
        asked_at = self._clock.now()
        number = await self._number_of(account, card)
        with self._forgetting_astray(account, card):
            reply = await self._send(account, "realNameQueryIot", {"access_number": number})
            if reply.code not in {OK, NO_REAL_NAME}:
                raise refusal_of(reply, changing=False)
            if echoed_number(object_of(reply.fields, "RESULT"), "number") != number:
                raise WrongCard("网关应答的卡与所查的卡不符")
        verified = reply.code == OK and answers.has_real_name(reply.fields)
        return RealNameAnswer(iccid=card.iccid, status="verified" if verified else "unverified", at=asked_at)

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Return whether the card is on the network."""
        asked_at = self._clock.now()
        reply = await self._ask(account, "getOnlineStatus", {"iccid": _iccid(card)})
        description = object_of(reply.fields, "description")
        await self._check_number(account, card, echoed_number(description, "msisdn"))
        return answers.session_of(description, card, asked_at)

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        """Return a page of the customer's cards; a cursor is the page's number."""
        page = 1 if cursor is None else int(cursor)
        reply = await self._ask(account, "getSIMList", {"pageIndex": str(page)})
        return answers.card_page(object_of(reply.fields, "description"), page)

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Order the card's service stopped with its number kept; sent once."""
        return await self._change(account, card, STOP, request_id)

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Order the card's service resumed; sent once."""
        return await self._change(account, card, RESUME, request_id)

    async def _change(
        self, account: GatewayAccount, card: CardRef, order_type: str, request_id: str
    ) -> OperationAnswer:
        try:
            number = await self._number_of(account, card)
        except WrongCard:
            raise
        except (BadResponse, Transient) as error:
            raise Transient(str(error), maybe_executed=False) from error
        order = {"access_number": number, "acctCd": "", "orderTypeId": order_type}
        with self._forgetting_astray(account, card):
            reply = await self._send(account, "disabledNumber", order, resend=False)
            if reply.code != OK:
                raise refusal_of(reply, changing=True)
            if "number" in reply.fields and echoed_number(reply.fields, "number") != number:
                raise WrongCard("网关应答的卡与所操作的卡不符")
        return OperationAnswer(request_id, card.iccid, OperationState.PENDING, self._clock.now())

    async def _check_number(self, account: GatewayAccount, card: CardRef, number: str) -> None:
        """Return if a number is the card's: its ICCID, the number we know or the one it leads to."""
        known = local_number(card.msisdn) if card.msisdn else None
        if is_about(number, card, known):
            return
        is_iccid = len(number) >= _ICCID_CHARS
        if is_iccid or known is not None or number != await self._number_of(account, card):
            raise WrongCard("网关应答的卡与所查的卡不符")

    async def _number_of(self, account: GatewayAccount, card: CardRef) -> str:
        """Return the access number that the platform has for the ICCID: ours may be another card's."""
        key = (account.id, _iccid(card))
        number = self._numbers.get(key)
        if number is None:
            reply = await self._ask(account, "getTelephone", {"iccid": _iccid(card)})
            number = self._numbers[key] = echoed_number(reply.fields, "SMSG")
            if len(self._numbers) > _REMEMBERED_NUMBERS:
                self._numbers.popitem(last=False)
        if card.msisdn and local_number(card.msisdn) != number:
            del self._numbers[key]  # one of the two has changed: the next call asks anew
            raise WrongCard("平台上此卡的接入号与登记的不符")
        return number

    @contextmanager
    def _forgetting_astray(self, account: GatewayAccount, card: CardRef) -> Iterator[None]:
        """Forget the number we remember if it turns out not to be the card's: it may have got another."""
        try:
            yield
        except (CardUnknown, WrongCard):
            self._numbers.pop((account.id, _iccid(card)), None)
            raise

    async def _ask(self, account: GatewayAccount, method: str, parameters: Mapping[str, str]) -> CtccReply:
        reply = await self._send(account, method, parameters)
        if reply.code != OK:
            raise refusal_of(reply, changing=False)
        return reply

    async def _send(
        self, account: GatewayAccount, method: str, parameters: Mapping[str, str], *, resend: bool = True
    ) -> CtccReply:
        route = self._directory.route_of(account)
        query = signed_query(access_of(route.credential), method, parameters)
        try:
            answer = await self._transport.get(route.endpoint(QUERY_PATH).with_query(query), resend=resend)
        except GatewayError as error:
            raise error from None  # the cause may quote the address, and with it password and signature
        if answer.status != HTTPStatus.OK:
            raise refusal_by_status(answer, self._clock.now())
        return read_reply(answer.body)


def _iccid(card: CardRef) -> str:
    return card.iccid[:_ICCID_CHARS]
