"""The generic gateway: this project's own JSON contract (``docs/reference/gateway-contract.md``)."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, TypeVar

import orjson

from junhong_cmp.clock import Clock
from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.answers import (
    card_page,
    operation_answer,
    realname_answer,
    session_answer,
    status_answer,
    usage_answer,
)
from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.generic_batch import MAX_BATCH, Fields, batch_answers
from junhong_cmp.gateway.drivers.generic_refusals import refusal_of
from junhong_cmp.gateway.errors import BadResponse, GatewayError, GatewayNotConfigured
from junhong_cmp.gateway.json_body import decode_object
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.gateway.sessions import SessionAnswer
from junhong_cmp.gateway.signing import check_strength, signed_headers
from junhong_cmp.gateway.transport import HttpTransport

A = TypeVar("A")

USAGE_PATH: Final = "/v1/usage/query"
USAGE_BATCH_PATH: Final = "/v1/usage/batch-query"
STATUS_PATH: Final = "/v1/status/query"
STATUS_BATCH_PATH: Final = "/v1/status/batch-query"
REALNAME_PATH: Final = "/v1/real-name/query"
REALNAME_BATCH_PATH: Final = "/v1/real-name/batch-query"
SESSION_PATH: Final = "/v1/session/query"
LIST_PATH: Final = "/v1/cards/list"
STOP_PATH: Final = "/v1/cards/stop"
RESUME_PATH: Final = "/v1/cards/resume"
OPERATION_PATH: Final = "/v1/operations/query"


class GenericDriver:
    """A generic driver asks gateways that speak our own contract."""

    def __init__(self, transport: HttpTransport, directory: Directory, clock: Clock) -> None:
        self._transport = transport
        self._directory = directory
        self._clock = clock

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in the carrier's current cycle."""
        fields = await self._ask(account, USAGE_PATH, _about(card))
        return usage_answer(fields, card, default_unit=account.usage_unit, now=self._clock.now())

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Return an answer or an error for every card; at most 100 cards a call."""

        def read(item: Fields, card: CardRef) -> UsageAnswer:
            return usage_answer(item, card, default_unit=account.usage_unit, now=self._clock.now())

        return await self._ask_batch(account, USAGE_BATCH_PATH, cards, read)

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        fields = await self._ask(account, STATUS_PATH, _about(card))
        return status_answer(fields, card, now=self._clock.now())

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Return a state or an error for every card; at most 100 cards a call."""

        def read(item: Fields, card: CardRef) -> StatusAnswer:
            return status_answer(item, card, now=self._clock.now())

        return await self._ask_batch(account, STATUS_BATCH_PATH, cards, read)

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        fields = await self._ask(account, REALNAME_PATH, _about(card))
        return realname_answer(fields, card, now=self._clock.now())

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Return a state or an error for every card; at most 100 cards a call."""

        def read(item: Fields, card: CardRef) -> RealNameAnswer:
            return realname_answer(item, card, now=self._clock.now())

        return await self._ask_batch(account, REALNAME_BATCH_PATH, cards, read)

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Return whether the card is on the network."""
        fields = await self._ask(account, SESSION_PATH, _about(card))
        return session_answer(fields, card, now=self._clock.now())

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        """Return a page of the account's cards."""
        question = {} if cursor is None else {"cursor": cursor}
        return card_page(await self._ask(account, LIST_PATH, question))

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service stopped; sent once."""
        fields = await self._ask(account, STOP_PATH, _about(card, request_id), resend=False)
        return operation_answer(fields, card, request_id, now=self._clock.now())

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service resumed; sent once."""
        fields = await self._ask(account, RESUME_PATH, _about(card, request_id), resend=False)
        return operation_answer(fields, card, request_id, now=self._clock.now())

    async def query_operation(
        self, account: GatewayAccount, card: CardRef, request_id: str
    ) -> OperationAnswer:
        """Return how far an operation has come."""
        fields = await self._ask(account, OPERATION_PATH, _about(card, request_id))
        return operation_answer(fields, card, request_id, now=self._clock.now())

    async def _ask_batch(
        self,
        account: GatewayAccount,
        path: str,
        cards: Sequence[CardRef],
        read: Callable[[Fields, CardRef], A],
    ) -> dict[int, A | GatewayError]:
        if len(cards) > MAX_BATCH:
            raise ValueError(f"at most {MAX_BATCH} cards a batch, not {len(cards)}")
        if not cards:
            return {}
        fields = await self._ask(account, path, {"iccids": [card.iccid for card in cards]})
        return batch_answers(fields, cards, read)

    async def _ask(
        self, account: GatewayAccount, path: str, question: Mapping[str, object], *, resend: bool = True
    ) -> dict[str, object]:
        route = self._directory.route_of(account)
        try:
            check_strength(route.credential)
        except ConfigError as error:
            raise GatewayNotConfigured(f"账号 {account.code}：{error}") from error
        body = orjson.dumps({"account": account.code, **question})
        answer = await self._transport.post(
            route.endpoint(path),
            body,
            lambda: signed_headers(route.credential, path=path, body=body, unix_s=self._unix_s()),
            resend=resend,
        )
        if answer.status != HTTPStatus.OK:
            raise refusal_of(answer, self._clock.now())
        if answer.content_type != "application/json":
            raise BadResponse("网关响应无效：内容类型不是 application/json")
        return decode_object(answer.body)

    def _unix_s(self) -> int:
        return int(self._clock.now().timestamp())


def _about(card: CardRef, request_id: str | None = None) -> dict[str, object]:
    question: dict[str, object] = {"iccid": card.iccid}
    if card.msisdn:
        question["msisdn"] = card.msisdn
    if request_id is not None:
        question["request_id"] = request_id
    return question
