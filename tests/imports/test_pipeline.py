import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from tests.waiting import wait_until

from junhong_cmp.cards.model import Card
from junhong_cmp.imports.pipeline import Announcing, read_ahead

CARDS: Any = ["a card"]


async def test_one_item_is_made_while_another_is_at_work() -> None:
    made: list[int] = []

    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(3):
            made.append(number)
            yield number

    async with read_ahead(numbers()) as ahead:
        assert await anext(ahead) == 0
        await wait_until(lambda: made == [0, 1], description="the next one is made unasked")
        assert [number async for number in ahead] == [1, 2]


async def test_leaving_ends_the_generator_wherever_it_is() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with read_ahead(endless()) as ahead:
        assert await anext(ahead) == 1
    assert ended.is_set()


async def test_what_making_an_item_raises_comes_with_that_item() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise LookupError

    async with read_ahead(broken()) as ahead:
        assert await anext(ahead) == 1
        with pytest.raises(LookupError):
            await anext(ahead)


class Listener:
    """Hears of cards, and answers when it is allowed to."""

    def __init__(self) -> None:
        self.heard: list[Sequence[Card]] = []
        self.may_answer = asyncio.Event()
        self.broken_off = False

    async def __call__(self, cards: Sequence[Card]) -> None:
        self.heard.append(cards)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.broken_off = True
            raise


async def test_announcements_go_one_at_a_time_and_the_last_is_waited_for() -> None:
    listener = Listener()
    async with Announcing(listener) as announcing:
        await announcing.hand(CARDS)
        second = asyncio.create_task(announcing.hand(CARDS))
        await wait_until(lambda: len(listener.heard) == 1, description="the first is under way")
        assert not second.done()
        listener.may_answer.set()
        await second
        await announcing.hand([])
    assert listener.heard == [CARDS, CARDS]


async def test_what_an_announcement_raises_is_raised_by_the_next_step() -> None:
    async def deaf(_cards: Sequence[Card]) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        async with Announcing(deaf) as announcing:
            await announcing.hand(CARDS)


@pytest.mark.parametrize(
    ("error", "broken_off"),
    [(KeyError(), False), (asyncio.CancelledError(), True)],
    ids=["error", "cancelled"],
)
async def test_only_a_cancellation_breaks_an_announcement_off(
    error: BaseException, *, broken_off: bool
) -> None:
    listener = Listener()

    async def work() -> None:
        async with Announcing(listener) as announcing:
            await announcing.hand(CARDS)
            await wait_until(lambda: listener.heard == [CARDS], description="it is under way")
            asyncio.get_running_loop().call_later(0.05, listener.may_answer.set)
            raise error

    with pytest.raises(type(error)):
        await work()
    assert listener.broken_off is broken_off
    assert listener.may_answer.is_set() is not broken_off
