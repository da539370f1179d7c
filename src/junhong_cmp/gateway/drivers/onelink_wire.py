"""One call to OneLink: token, transaction id, and a first look at what came back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.directory import Directory, Route
from junhong_cmp.gateway.drivers.onelink_answers import only_item, token_of
from junhong_cmp.gateway.drivers.onelink_refusals import OK, TOKEN_EXPIRED, code_of, refusal_of
from junhong_cmp.gateway.drivers.onelink_transid import TransIds
from junhong_cmp.gateway.errors import AuthRejected
from junhong_cmp.gateway.http_refusals import refusal_by_status
from junhong_cmp.gateway.json_body import decode_object
from junhong_cmp.gateway.tokens import Token, TokenExpiredError, TokenStore
from junhong_cmp.gateway.transport import HttpTransport

TOKEN_PATH: Final = "/v5/ec/get/token"  # noqa: S105 - an address, not a token


@dataclass(frozen=True, slots=True)
class OneLinkCall:
    """What is asked, and where; a ``change`` is sent once, a query again if the connection breaks."""

    path: str
    question: Mapping[str, str] = field(repr=False)
    change: bool = False


class OneLinkWire:
    """A OneLink wire makes calls with a good token and returns the one item of each answer.

    Everything is posted: a token in an address would be in the access logs of every proxy.
    """

    def __init__(
        self, transport: HttpTransport, directory: Directory, clock: Clock, tokens: TokenStore
    ) -> None:
        self._transport = transport
        self._directory = directory
        self._clock = clock
        self._tokens = tokens
        self._transids = TransIds(clock)

    async def ask(self, account: GatewayAccount, call: OneLinkCall) -> Mapping[str, object]:
        """Return the item that answers a call.

        Raises:
            GatewayError: there is none; says what to do.

        """
        route = self._directory.route_of(account)

        async def fetch() -> Token:
            return await self._fetch(route)

        async def send(token: str) -> Mapping[str, object]:
            return await self._post(route, call, {"token": token, **call.question})

        return await self._tokens.use(account, route.credential, fetch, send)

    async def _fetch(self, route: Route) -> Token:
        question = {"appid": route.credential.key_id, "password": route.credential.secret}
        try:
            return token_of(await self._post(route, OneLinkCall(TOKEN_PATH, {}), question))
        except TokenExpiredError as error:
            raise AuthRejected("OneLink 在发放令牌时称令牌已过期") from error

    async def _post(self, route: Route, call: OneLinkCall, fields: Mapping[str, str]) -> Mapping[str, object]:
        answer = await self._transport.post(
            route.endpoint(call.path),
            lambda: orjson.dumps({"transid": self._transids.next(route.credential.key_id), **fields}),
            dict,
            resend=not call.change,
        )
        if answer.status != HTTPStatus.OK:
            raise refusal_by_status(answer, self._clock.now())
        said = decode_object(answer.body)
        code = code_of(said)
        if code == TOKEN_EXPIRED:
            raise TokenExpiredError
        if code != OK:
            raise refusal_of(code, said.get("message"), change=call.change)
        return only_item(said)
