"""Calls that some carriers' interfaces do not have: a driver inherits what its carrier lacks."""

from collections.abc import Mapping, Sequence

from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.client import CardRef, GatewayAccount, RealNameAnswer, StatusAnswer, UsageAnswer
from junhong_cmp.gateway.errors import GatewayError, NotOffered
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.gateway.sessions import SessionAnswer


class NoOperationQuery:
    """A carrier that keeps no record of our request ids; a card's state shows what came of a change."""

    async def query_operation(
        self, account: GatewayAccount, card: CardRef, request_id: str
    ) -> OperationAnswer:
        """Raise NotOffered."""
        del card, request_id
        raise _lacking(account, "按请求编号查询操作结果")


class NoSessionQuery:
    """A carrier that does not tell whether a card is on the network."""

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        """Raise NotOffered."""
        del card
        raise _lacking(account, "在线状态查询")


class NoCardList:
    """A carrier that does not list an account's cards."""

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        """Raise NotOffered."""
        del cursor
        raise _lacking(account, "卡列表查询")


class NoBatches:
    """A carrier that is asked about each card by itself."""

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Raise NotOffered, if there are cards."""
        return _no_batch(account, cards)

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Raise NotOffered, if there are cards."""
        return _no_batch(account, cards)

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Raise NotOffered, if there are cards."""
        return _no_batch(account, cards)


def _no_batch(account: GatewayAccount, cards: Sequence[CardRef]) -> dict[int, GatewayError]:
    if cards:
        raise _lacking(account, "批量查询")
    return {}


def _lacking(account: GatewayAccount, call: str) -> NotOffered:
    return NotOffered(f"账号 {account.code} 的运营商接口（{account.driver}）没有{call}")
