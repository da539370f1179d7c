"""The generic gateway: this project's own JSON contract (``docs/reference/gateway-contract.md``)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.answers import operation_answer, realname_answer, status_answer, usage_answer
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.generic_batch import MAX_BATCH, batch_answers
from junhong_cmp.gateway.drivers.generic_refusals import refusal_of
from junhong_cmp.gateway.errors import BadResponse, GatewayError
from junhong_cmp.gateway.json_body import decode_object
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.gateway.signing import signed_headers
from junhong_cmp.gateway.transport import HttpTransport

USAGE_PATH: Final = "/v1/usage/query"
USAGE_BATCH_PATH: Final = "/v1/usage/batch-query"
STATUS_PATH: Final = "/v1/status/query"
REALNAME_PATH: Final = "/v1/real-name/query"
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
        if len(cards) > MAX_BATCH:
            raise ValueError(f"at most {MAX_BATCH} cards a batch, not {len(cards)}")
        if not cards:
            return {}
        fields = await self._ask(account, USAGE_BATCH_PATH, {"iccids": [card.iccid for card in cards]})
        return batch_answers(fields, cards, default_unit=account.usage_unit, now=self._clock.now())

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        fields = await self._ask(account, STATUS_PATH, _about(card))
        return status_answer(fields, card, now=self._clock.now())

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        fields = await self._ask(account, REALNAME_PATH, _about(card))
        return realname_answer(fields, card, now=self._clock.now())

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

    async def _ask(
        self, account: GatewayAccount, path: str, question: Mapping[str, object], *, resend: bool = True
    ) -> dict[str, object]:
        route = self._directory.route_of(account)
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
