from datetime import timedelta

import pytest

from junhong_cmp.leadership.times import LeaseTimes


def seconds(ttl: float, renew: float, retry: float) -> LeaseTimes:
    return LeaseTimes(
        ttl=timedelta(seconds=ttl), renew=timedelta(seconds=renew), retry=timedelta(seconds=retry)
    )


@pytest.mark.parametrize("times", [(15, 5, 2), (6, 2, 0.5), (3, 1, 0.5)])
def test_a_holder_trusts_the_lease_for_less_than_it_lasts(times: tuple[float, float, float]) -> None:
    chosen = seconds(*times)
    assert chosen.renew + chosen.retry < chosen.trust < chosen.ttl
    assert chosen.attempt < chosen.renew


@pytest.mark.parametrize("times", [(15, 12, 2), (15, 14, 1), (15, 0, 2), (15, 5, 0), (1, 5, 2)])
def test_times_that_leave_no_second_attempt_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="九成"):
        seconds(*times)


def test_retries_are_jittered_by_a_fifth() -> None:
    times = LeaseTimes()
    waits = [times.next_retry() for _ in range(200)]
    assert 1.6 <= min(waits) < max(waits) <= 2.4
