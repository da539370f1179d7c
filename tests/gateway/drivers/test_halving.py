from collections.abc import Collection, Mapping, Sequence

import pytest

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.halving import MOST_CALLS, ask_in_halves
from junhong_cmp.gateway.errors import BadRequest, CardUnknown, GatewayError, Throttled, Transient

CARDS = [CardRef(number, f"8986001234567{number:06d}0") for number in range(100)]


class Carrier:
    """A carrier refuses every batch that holds one of the ``bad`` cards, and all after ``patience`` calls."""

    def __init__(self, bad: Collection[int], patience: int = 1000) -> None:
        self._bad = frozenset(bad)
        self._patience = patience
        self.asked: list[int] = []

    async def ask(self, group: Sequence[CardRef]) -> Mapping[int, str | GatewayError]:
        self.asked.append(len(group))
        if len(self.asked) > self._patience:
            raise Throttled("够了")
        if any(card.card_id in self._bad for card in group):
            raise CardUnknown("没有这张卡")
        return {card.card_id: "ok" for card in group}


async def test_a_good_batch_is_asked_once() -> None:
    carrier = Carrier(())
    assert await ask_in_halves(CARDS, carrier.ask) == dict.fromkeys(range(100), "ok")
    assert carrier.asked == [100]


@pytest.mark.parametrize("bad", [0, 37, 99])
async def test_one_bad_card_is_found_and_the_others_are_told(bad: int) -> None:
    carrier = Carrier({bad})
    answers = await ask_in_halves(CARDS, carrier.ask)
    assert [number for number, told in answers.items() if told != "ok"] == [bad]
    assert isinstance(answers[bad], CardUnknown)
    assert set(answers) == set(range(100))
    assert len(carrier.asked) <= 15


async def test_the_search_is_given_up_before_it_costs_more_than_it_brings() -> None:
    carrier = Carrier(range(0, 100, 2))
    answers = await ask_in_halves(CARDS, carrier.ask)
    assert len(carrier.asked) == MOST_CALLS
    assert set(answers) == set(range(100))
    assert all(told == "ok" or isinstance(told, CardUnknown | Transient) for told in answers.values())


async def test_what_was_learnt_is_kept_when_the_carrier_has_had_enough() -> None:
    carrier = Carrier({99}, patience=2)
    answers = await ask_in_halves(CARDS, carrier.ask)
    assert [answers[number] for number in range(50)] == ["ok"] * 50
    assert all(isinstance(answers[number], Throttled) for number in range(50, 100))


async def test_a_failure_of_the_first_call_concerns_all() -> None:
    async def refuse(_: Sequence[CardRef]) -> Mapping[int, str | GatewayError]:
        raise BadRequest("参数错误")

    with pytest.raises(BadRequest):
        await ask_in_halves(CARDS, refuse)


async def test_a_batch_of_one_unknown_card_is_that_card() -> None:
    answers = await ask_in_halves(CARDS[:1], Carrier({0}).ask)
    assert isinstance(answers[0], CardUnknown)
