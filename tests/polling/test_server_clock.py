from tests.waiting import FakeClock

from junhong_cmp.polling.server_clock import ServerClock


def test_it_carries_on_what_it_was_told(clock: FakeClock) -> None:
    server_clock = ServerClock(clock.monotonic)
    assert server_clock.now_ms() is None
    server_clock.note(1_700_000_000_000)
    clock.advance(2.5)
    assert server_clock.now_ms() == 1_700_000_002_500
    server_clock.note(1_600_000_000_000)
    assert server_clock.now_ms() == 1_600_000_000_000
