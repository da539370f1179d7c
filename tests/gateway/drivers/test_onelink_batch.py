from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.onelink_batch import WholeDays, usage_answers
from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, WrongCard

CARDS = [CardRef(number, f"8986001234567{number:06d}0") for number in range(3)]
DAYS = WholeDays.before(datetime(2026, 3, 10, 4, tzinfo=UTC))
END = datetime(2026, 3, 9, 15, 59, 59, 999000, tzinfo=UTC)
GOOD = [{"iccid": card.iccid, "dataAmount": str(card.card_id)} for card in CARDS]


@pytest.mark.parametrize(
    ("now", "month", "end"),
    [
        ((2026, 3, 10, 4), "202603", (2026, 3, 9)),
        ((2026, 3, 9, 16), "202603", (2026, 3, 9)),
        ((2026, 2, 28, 16), "202602", (2026, 2, 28)),
        ((2026, 3, 1, 16), "202603", (2026, 3, 1)),
        ((2025, 12, 31, 20), "202512", (2025, 12, 31)),
        ((2028, 3, 1, 1), "202802", (2028, 2, 29)),
    ],
)
def test_a_batch_covers_the_month_of_yesterday_in_china(
    now: tuple[int, int, int, int], month: str, end: tuple[int, int, int]
) -> None:
    days = WholeDays.before(datetime(*now, tzinfo=UTC))
    assert days.month == month
    local = days.end(None).astimezone(CARRIER_TIME)
    assert local == datetime(*end, 23, 59, 59, 999000, tzinfo=CARRIER_TIME)
    assert billing_cycle(local, 1, ZoneInfo("Asia/Shanghai")) == f"{month[:4]}-{month[4:]}-01"


@pytest.mark.parametrize(
    ("deadline", "day"),
    [
        ("20260308", 8),
        ("2026-03-07", 7),
        ("2026-03-07 23:59:59", 7),
        (" ", 9),
        (None, 9),
        ("20260331", 9),
        ("20260399", 9),
        ("202603081", 9),
        (20260308, 9),
    ],
)
def test_the_carrier_may_say_that_its_figures_end_earlier(deadline: object, day: int) -> None:
    assert DAYS.end(deadline).astimezone(CARRIER_TIME).day == day


def test_another_months_figures_are_refused() -> None:
    with pytest.raises(BadResponse):
        DAYS.end("20260228")


def test_every_card_gets_its_own() -> None:
    answers = usage_answers({"deadLine": "20260309", "dataAmountList": GOOD[::-1]}, CARDS, DAYS)
    assert answers == {card.card_id: UsageAnswer(card.iccid, card.card_id, END) for card in CARDS}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"dataAmount": "-7"}, BadResponse),
        ({}, BadResponse),
        ({"dataAmount": "1", "status": "11011", "message": "卡号不存在"}, CardUnknown),
        ({"dataAmount": "1", "status": 1.5}, BadResponse),
        ({"dataAmount": "1", "msisdn": 7}, BadResponse),
        ({"dataAmount": "1", "status": "0"}, UsageAnswer),
    ],
)
def test_one_bad_entry_does_not_spoil_its_neighbours(entry: dict[str, object], expected: type) -> None:
    entries = [GOOD[0], {"iccid": CARDS[1].iccid, **entry}, GOOD[2]]
    answers = usage_answers({"dataAmountList": entries}, CARDS, DAYS)
    assert type(answers[1]) is expected
    assert type(answers[0]) is type(answers[2]) is UsageAnswer


@pytest.mark.parametrize("told", [{"dataAmount": "1"}, {"status": "11011", "message": "卡号不存在"}])
def test_neither_usage_nor_a_refusal_counts_beside_another_cards_number(told: dict[str, object]) -> None:
    card = CardRef(1, CARDS[1].iccid, msisdn="1440012345678")
    entry = {"iccid": card.iccid, "msisdn": "1440099999999", **told}
    assert type(usage_answers({"dataAmountList": [entry]}, [card], DAYS)[1]) is WrongCard


def test_a_card_left_out_or_told_twice_has_no_answer() -> None:
    answers = usage_answers({"dataAmountList": [GOOD[0], GOOD[0], GOOD[2]]}, CARDS, DAYS)
    assert [type(answers[number]) for number in range(3)] == [BadResponse, BadResponse, UsageAnswer]


def test_a_card_nobody_asked_for_spoils_only_the_one_in_whose_place_it_stands() -> None:
    stranger = {"iccid": "89860099999999999990", "dataAmount": "1"}
    answers = usage_answers({"dataAmountList": [stranger, *GOOD[1:]]}, CARDS, DAYS)
    assert [type(answers[number]) for number in range(3)] == [WrongCard, UsageAnswer, UsageAnswer]
    with pytest.raises(WrongCard):
        usage_answers({"dataAmountList": [stranger]}, CARDS, DAYS)


@pytest.mark.parametrize("entries", [None, {}, "x", ["x"], [{"dataAmount": "1"}], [{"iccid": 7}]])
def test_a_list_of_other_things_is_refused(entries: object) -> None:
    with pytest.raises(BadResponse):
        usage_answers({"dataAmountList": entries}, CARDS, DAYS)
