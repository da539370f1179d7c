"""The gateway client over HTTP: one pool, one wall per account, each account's own driver."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

import structlog
from yarl import URL

from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.bulkhead import Bulkhead
from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    GatewayCall,
    GatewayCalls,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.table import DRIVERS, DriverParts, batch_size_of, change_rest_of
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayError, GatewayNotConfigured, WrongCard
from junhong_cmp.gateway.limits.breakers import AccountBreakers
from junhong_cmp.gateway.limits.call_limits import CallLimits
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.gateway.sessions import SessionAnswer
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import HttpTransport
from junhong_cmp.gateway.tuning import GatewayTuning

log = structlog.stdlib.get_logger(__name__)

A = TypeVar("A")

_DEFAULT_TUNING: Final = GatewayTuning()


class HttpGateway:
    """An HTTP gateway hands each call to the driver of its account, within that account's slots."""

    def __init__(self, parts: DriverParts, limits: CallLimits) -> None:
        self._transport = parts.transport
        self._tokens = parts.tokens
        self._drivers: dict[str, GatewayCalls] = {name: row.open(parts) for name, row in DRIVERS.items()}
        self._limits = limits

    async def open(self) -> None:
        """Prepare the connection pool in the running loop."""
        await self._transport.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._tokens.close()
        await self._transport.close()

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Return the card's usage in the carrier's current cycle."""
        return await self._ask(account, card, lambda driver: driver.query_usage(account, card))

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Return an answer or an error for every card, by card id."""
        return await self._ask(account, None, lambda driver: driver.query_usage_batch(account, cards))

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Return the card's state."""
        return await self._ask(account, card, lambda driver: driver.query_status(account, card))

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Return a state or an error for every card, by card id."""
        return await self._ask(account, None, lambda driver: driver.query_status_batch(account, cards))

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Return the card's real-name state."""
        return await self._ask(account, card, lambda driver: driver.query_realname(account, card))

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Return a state or an error for every card, by card id."""
        return await self._ask(account, None, lambda driver: driver.query_realname_batch(account, cards))

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Return whether the card is on the network."""
        return await self._ask(account, card, lambda driver: driver.query_session(account, card))

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        """Return a page of the account's cards."""
        return await self._ask(account, None, lambda driver: driver.list_cards(account, cursor))

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service stopped; AlreadyDone if it was."""
        return await self._change(
            account, card, request_id, lambda driver: driver.stop(account, card, request_id)
        )

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        """Have the card's service resumed; AlreadyDone if it was running."""
        return await self._change(
            account, card, request_id, lambda driver: driver.resume(account, card, request_id)
        )

    async def query_operation(
        self, account: GatewayAccount, card: CardRef, request_id: str
    ) -> OperationAnswer:
        """Return how far the stop or resume sent as ``request_id`` has come."""
        return await self._ask(
            account, card, lambda driver: driver.query_operation(account, card, request_id)
        )

    def batch_size(self, account: GatewayAccount, call: GatewayCall) -> int:
        """Return the most cards of the account one such call may ask about."""
        return batch_size_of(account, call)

    async def _ask(
        self, account: GatewayAccount, card: CardRef | None, ask: Callable[[GatewayCalls], Awaitable[A]]
    ) -> A:
        driver = self._drivers.get(account.driver)
        if driver is None:
            raise GatewayNotConfigured(f"账号 {account.code} 的网关驱动不存在：{account.driver}")
        async with self._limits.call(account):
            try:
                return await ask(driver)
            except WrongCard as error:
                card_id = card.card_id if card else None
                log.warning(
                    "网关返回了其他卡的数据，已拒绝", account=account.code, card_id=card_id, cause=str(error)
                )
                raise

    async def _change(
        self,
        account: GatewayAccount,
        card: CardRef,
        request_id: str,
        change: Callable[[GatewayCalls], Awaitable[OperationAnswer]],
    ) -> OperationAnswer:
        async with self._limits.change(card, request_id, change_rest_of(account)):
            return await self._ask(account, card, change)


def open_http_gateway(
    *,
    base_url: str,
    credentials: Mapping[str, Credential],
    default_credential: Credential | None,
    tuning: GatewayTuning = _DEFAULT_TUNING,
    allow_http: bool = False,
    allowed_hosts: Collection[str] = (),
) -> HttpGateway:
    """Compose the gateway client; no I/O before its ``open``.

    Args:
        base_url: for accounts without one of their own; its host is allowed by being named here.
        credentials: by the ``credential_ref`` of accounts.
        default_credential: for accounts without a ``credential_ref``.
        tuning: time limits of every call, and when accounts and cards are left alone.
        allow_http: accept plain http, for a gateway in one's own network.
        allowed_hosts: the only other hosts that accounts may name.

    Raises:
        ConfigError: ``base_url`` may not be called.

    """
    policy = EndpointPolicy(allow_http=allow_http, allowed_hosts={*allowed_hosts, *_host_of(base_url)})
    try:
        policy.check(base_url)
    except GatewayNotConfigured as error:
        raise ConfigError([str(error)]) from error
    directory = Directory(
        policy, base_url=base_url, credentials=credentials, default_credential=default_credential
    )
    clock = tuning.clock
    parts = DriverParts(HttpTransport(tuning.timeouts), directory, clock, TokenStore(clock))
    limits = CallLimits(
        Bulkhead(patience=tuning.patience), AccountBreakers(tuning.breaker, clock), tuning.change_gap
    )
    return HttpGateway(parts, limits)


def _host_of(base_url: str) -> tuple[str, ...]:
    try:
        host = URL(base_url).host
    except ValueError:  # reported by the policy, with its reason
        return ()
    return (host,) if host else ()
