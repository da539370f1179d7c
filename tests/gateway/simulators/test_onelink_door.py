from datetime import timedelta

import pytest
from tests.gateway.onelink_carrier import CREDENTIAL, START

from junhong_cmp.gateway.simulators.onelink_door import ChangeGaps, TokenDesk, TransIdBook

RIGHT = {"appid": CREDENTIAL.key_id, "password": CREDENTIAL.secret}
APPID = CREDENTIAL.key_id
NOW_IN_CHINA = "20260310123000"


def test_the_same_token_is_handed_out_until_it_ends() -> None:
    desk = TokenDesk(CREDENTIAL)
    first = desk.issue(RIGHT, START)
    again = desk.issue(RIGHT, START + timedelta(minutes=50))
    assert first is not None
    assert again == (first[0], 600)
    later = desk.issue(RIGHT, START + timedelta(hours=1))
    assert later is not None
    assert later[0] != first[0]
    assert not desk.accepts(first[0], START + timedelta(hours=1))
    assert desk.accepts(later[0], START + timedelta(hours=1))


def test_before_the_first_token_none_is_good() -> None:
    assert not TokenDesk(CREDENTIAL).accepts("", START)


@pytest.mark.parametrize("wrong", [{}, {"appid": "x"}, {"password": "x"}, {"appid": ""}])
def test_both_halves_of_the_credential_are_needed(wrong: dict[str, str]) -> None:
    assert TokenDesk(CREDENTIAL).issue({**RIGHT, **wrong} if wrong else {}, START) is None


@pytest.mark.parametrize(
    "transid",
    [
        "",
        f"{NOW_IN_CHINA}00000001",
        f"{APPID}{NOW_IN_CHINA}0000001",
        f"{APPID}{NOW_IN_CHINA}000000001",
        f"{APPID}{NOW_IN_CHINA}0000000x",
        f"{APPID}2026031004300000000001",
        f"{APPID}2026133112300000000001",
        f"x{APPID}{NOW_IN_CHINA}00000001",
    ],
)
def test_a_transid_of_another_form_or_time_is_refused(transid: str) -> None:
    assert not TransIdBook(APPID).enter(transid, START)


def test_a_transid_is_good_once() -> None:
    book = TransIdBook(APPID)
    assert [book.enter(f"{APPID}{NOW_IN_CHINA}00000001", START) for _ in range(2)] == [True, False]


def test_a_card_rests_three_minutes_and_no_other() -> None:
    gaps = ChangeGaps()
    gaps.note("a", START)
    assert not gaps.is_open("a", START + timedelta(seconds=179))
    assert gaps.is_open("a", START + timedelta(seconds=180))
    assert gaps.is_open("b", START)
