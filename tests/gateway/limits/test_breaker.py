from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.limits.breaker import (
    Breaker,
    BreakerSettings,
    BreakerState,
    CallVerdict,
    Pass,
)

SETTINGS = BreakerSettings(min_calls=4, rest=timedelta(seconds=5), longest_rest=timedelta(seconds=30))
WORKED, FAILED, NOTHING = CallVerdict.WORKED, CallVerdict.FAILED, CallVerdict.NOTHING


def new_breaker() -> Breaker:
    return Breaker(SETTINGS, spread=lambda _low, _high: 1.0)


def call(breaker: Breaker, verdict: CallVerdict, now_s: float) -> bool:
    """Make a call if it may be made; tell whether it was."""
    leave = breaker.ask(now_s)
    if not isinstance(leave, Pass):
        return False
    breaker.settle(leave, verdict, now_s)
    return True


def state_of(breaker: Breaker) -> BreakerState:
    return breaker.state


def opened() -> Breaker:
    breaker = new_breaker()
    for _ in range(4):
        call(breaker, FAILED, 0)
    return breaker


def test_it_opens_by_the_share_of_failures_once_there_are_enough_calls() -> None:
    breaker = new_breaker()
    for verdict in (FAILED, FAILED, FAILED):
        call(breaker, verdict, 0)
    assert state_of(breaker) is BreakerState.CLOSED, "three calls tell nothing"
    call(breaker, WORKED, 0)
    assert state_of(breaker) is BreakerState.OPEN
    assert breaker.ask(1.0) == timedelta(seconds=4)


def test_a_few_failures_among_many_calls_do_not_open_it() -> None:
    breaker = new_breaker()
    for number in range(1000):
        call(breaker, FAILED if number % 3 == 2 else WORKED, number / 100)
    assert state_of(breaker) is BreakerState.CLOSED


def test_calls_that_were_not_made_do_not_count() -> None:
    breaker = new_breaker()
    for _ in range(100):
        call(breaker, NOTHING, 0)
    assert breaker.rate.calls == 0


def test_exactly_one_probe_runs_at_a_time() -> None:
    breaker = opened()
    first = breaker.ask(5)
    assert isinstance(first, Pass)
    assert first.probe
    assert state_of(breaker) is BreakerState.HALF_OPEN
    assert breaker.ask(5) == breaker.ask(50) == timedelta(seconds=1)
    breaker.settle(first, WORKED, 50)
    assert state_of(breaker) is BreakerState.CLOSED
    assert breaker.open_for(50) == timedelta(seconds=50)
    assert call(breaker, FAILED, 50)
    assert state_of(breaker) is BreakerState.CLOSED, "what failed before it opened is forgotten"


@pytest.mark.parametrize("failures", [1, 2, 3, 50, 2000])
def test_each_failed_probe_doubles_the_rest_up_to_the_longest(failures: int) -> None:
    breaker, now_s = opened(), 0.0
    for _ in range(failures):
        wait = breaker.ask(now_s)
        assert isinstance(wait, timedelta)
        now_s += wait.total_seconds() + 0.001
        assert call(breaker, FAILED, now_s)
    assert breaker.ask(now_s) == timedelta(seconds=min(5 * 2**failures, 30))


def test_a_probe_that_was_not_made_leaves_the_probe_to_the_next_call() -> None:
    breaker = opened()
    assert call(breaker, NOTHING, 5)
    assert state_of(breaker) is BreakerState.OPEN
    assert call(breaker, WORKED, 5)
    assert state_of(breaker) is BreakerState.CLOSED


def test_calls_from_before_it_opened_or_closed_are_not_counted() -> None:
    breaker = new_breaker()
    early = [breaker.ask(0) for _ in range(20)]
    for _ in range(4):
        call(breaker, FAILED, 0)
    for leave in early[:10]:
        assert isinstance(leave, Pass)
        breaker.settle(leave, WORKED, 1)
    assert state_of(breaker) is BreakerState.OPEN
    call(breaker, WORKED, 5)
    for leave in early[10:]:
        assert isinstance(leave, Pass)
        breaker.settle(leave, FAILED, 6)
    assert state_of(breaker) is BreakerState.CLOSED


def test_the_rest_is_spread_so_that_a_fleet_does_not_probe_at_one_moment() -> None:
    waits = set()
    for _ in range(20):
        breaker = Breaker(SETTINGS)
        for _ in range(4):
            call(breaker, FAILED, 0)
        waits.add(breaker.ask(0))
    assert len(waits) > 10
    assert all(isinstance(wait, timedelta) and 4 <= wait.total_seconds() <= 6 for wait in waits)


@given(st.lists(st.tuples(st.sampled_from(CallVerdict), st.floats(0, 20), st.booleans()), max_size=60))
def test_whatever_happens_there_is_one_probe_and_a_way_back(
    steps: list[tuple[CallVerdict, float, bool]],
) -> None:
    breaker, now_s = new_breaker(), 0.0
    under_way: list[Pass] = []
    for verdict, step, ends in steps:
        now_s += step
        leave = breaker.ask(now_s)
        if isinstance(leave, Pass):
            under_way.append(leave)
        assert sum(one.probe for one in under_way) <= 1
        if ends and under_way:
            breaker.settle(under_way.pop(0), verdict, now_s)
    for leave in under_way:
        breaker.settle(leave, NOTHING, now_s)
    assert call(breaker, WORKED, now_s + 1000)
    assert state_of(breaker) is BreakerState.CLOSED
