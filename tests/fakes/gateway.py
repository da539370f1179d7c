"""A gateway without a network: scripted answers, recorded calls, calls in flight counted by card."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from junhong_cmp.gateway.card_list import CardPage, ListedCard
from junhong_cmp.gateway.client import (
    CardRef,
    GatewayAccount,
    GatewayCall,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.drivers.table import batch_size_of
from junhong_cmp.gateway.errors import AlreadyDone, CardUnknown, GatewayError
from junhong_cmp.gateway.operations import OperationAnswer, OperationState
from junhong_cmp.gateway.sessions import SessionAnswer

T = TypeVar("T")


class FakeGateway:
    """A fake gateway answers at once for every card, unless told otherwise.

    ``fail`` maps card ids to the error they meet; ``fail_all`` is met by everybody. ``hold`` keeps
    calls open until it is set. ``most_in_flight`` is the highest number of calls that were open
    at once for one (operation, card).
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.batches: list[tuple[str, int]] = []
        self.listed: list[ListedCard] = []
        self.fail: dict[int, Exception] = {}
        self.fail_all: GatewayError | None = None
        self.hold: asyncio.Event | None = None
        self.used_kb: defaultdict[int, int] = defaultdict(lambda: 1000)
        self.status = ("1", "active")
        self.real_name = "verified"
        self.unknown: set[int] = set()
        self.stopped: set[int] = set()
        self.open_calls = 0
        self.most_in_flight = 0
        self._in_flight: Counter[tuple[str, int]] = Counter()
        self._operations: dict[str, OperationAnswer] = {}

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        return await self._answer(
            "usage", card, lambda: UsageAnswer(card.iccid, self.used_kb[card.card_id], datetime.now(UTC))
        )

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        return await self._batch("usage", cards, lambda card: self.query_usage(account, card))

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        raw, status = self.status
        return await self._answer(
            "status", card, lambda: StatusAnswer(card.iccid, raw, status, datetime.now(UTC))
        )

    async def query_status_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        return await self._batch("status", cards, lambda card: self.query_status(account, card))

    async def query_realname(self, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        return await self._answer(
            "realname", card, lambda: RealNameAnswer(card.iccid, self.real_name, datetime.now(UTC))
        )

    async def query_realname_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        return await self._batch("realname", cards, lambda card: self.query_realname(account, card))

    async def query_session(self, account: GatewayAccount, card: CardRef) -> SessionAnswer:
        return await self._answer(
            "session",
            card,
            lambda: SessionAnswer(card.iccid, online=True, ip=None, since=None, at=datetime.now(UTC)),
        )

    async def list_cards(self, account: GatewayAccount, cursor: str | None) -> CardPage:
        if self.fail_all is not None:
            raise self.fail_all
        return CardPage(self.listed, None)

    def batch_size(self, account: GatewayAccount, call: GatewayCall) -> int:
        return batch_size_of(account, call)

    async def stop(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        return await self._operate("stop", card, request_id)

    async def resume(self, account: GatewayAccount, card: CardRef, request_id: str) -> OperationAnswer:
        return await self._operate("resume", card, request_id)

    async def query_operation(
        self, account: GatewayAccount, card: CardRef, request_id: str
    ) -> OperationAnswer:
        unknown = OperationAnswer(request_id, card.iccid, OperationState.UNKNOWN, datetime.now(UTC))
        return await self._answer("operation", card, lambda: self._operations.get(request_id, unknown))

    async def _batch(
        self, operation: str, cards: Sequence[CardRef], ask: Callable[[CardRef], Awaitable[T]]
    ) -> dict[int, T | GatewayError]:
        """Count the call as one, in ``batches``; each card of it meets what a single call would."""
        if self.fail_all is not None:
            raise self.fail_all
        self.batches.append((operation, len(cards)))
        answers = await asyncio.gather(*(_caught(ask(card)) for card in cards))
        return {card.card_id: answer for card, answer in zip(cards, answers, strict=True)}

    async def _operate(self, operation: str, card: CardRef, request_id: str) -> OperationAnswer:
        def apply() -> OperationAnswer:
            if (card.card_id in self.stopped) == (operation == "stop"):
                raise AlreadyDone("卡已处于目标状态")
            self.stopped ^= {card.card_id}
            done = OperationAnswer(request_id, card.iccid, OperationState.DONE, datetime.now(UTC))
            self._operations[request_id] = done
            return done

        return await self._answer(operation, card, apply)

    async def _answer(self, operation: str, card: CardRef, answer: Callable[[], T]) -> T:
        call = (operation, card.card_id)
        self.calls.append(call)
        self._in_flight[call] += 1
        self.open_calls += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight[call])
        try:
            if self.hold is not None:
                await self.hold.wait()
            error = self.fail_all or self.fail.get(card.card_id)
            if error is not None:
                raise error
            if card.card_id in self.unknown:
                raise CardUnknown("运营商不认识该卡")
            return answer()
        finally:
            self._in_flight[call] -= 1
            self.open_calls -= 1


async def _caught(call: Awaitable[T]) -> T | GatewayError:
    try:
        return await call
    except GatewayError as error:
        return error
