import re
from datetime import UTC, datetime, timedelta

from tests.waiting import FakeClock

from junhong_cmp.gateway.drivers.onelink_transid import TransIds

APPID = "200216378200200000"


def test_an_id_is_the_appid_the_second_in_china_and_eight_digits() -> None:
    made = TransIds(FakeClock(datetime(2026, 2, 28, 16, 5, 9, tzinfo=UTC))).next(APPID)
    assert re.fullmatch(APPID + "20260301000509" + "[0-9]{8}", made)


def test_no_id_comes_twice_even_if_the_clock_steps_back() -> None:
    clock = FakeClock()
    ids = TransIds(clock)
    made = set()
    for step_s in (0, 1, -1, -1, 2):
        clock.advance(timedelta(seconds=step_s))
        made |= {ids.next(APPID) for _ in range(1000)}
    assert len(made) == 5000


def test_the_count_wraps_within_its_digits() -> None:
    ids = TransIds(FakeClock())
    ids._count = 10**8 - 2
    assert [ids.next("a")[-8:] for _ in range(3)] == ["99999999", "00000000", "00000001"]


def test_two_processes_count_from_different_numbers() -> None:
    clock = FakeClock()
    assert TransIds(clock).next(APPID) != TransIds(clock).next(APPID)
