from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.limits.failure_rate import FailureRate

WINDOW = timedelta(seconds=10)


def test_old_calls_are_forgotten() -> None:
    rate = FailureRate(WINDOW)
    for second in range(5):
        rate.add(second, failed=True)
    assert (rate.calls, rate.rate) == (5, 1.0)
    rate.add(12, failed=False)
    assert (rate.calls, rate.failures) == (3, 2)
    rate.add(100, failed=False)
    assert (rate.calls, rate.rate) == (1, 0.0)
    rate.clear()
    assert (rate.calls, rate.rate) == (0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans())))
def test_it_counts_what_a_list_of_all_calls_would(steps: list[tuple[float, bool]]) -> None:
    rate, now, calls = FailureRate(WINDOW), 0.0, []
    for step, failed in steps:
        now += step
        calls.append((int(now), failed))
        rate.add(now, failed=failed)
        recent = [was for second, was in calls if second > int(now) - 10]
        assert (rate.calls, rate.failures) == (len(recent), sum(recent))
