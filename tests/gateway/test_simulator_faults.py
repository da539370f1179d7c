from datetime import timedelta

import pytest

from junhong_cmp.gateway import simulator_faults
from junhong_cmp.gateway.simulator_faults import Fault, FaultPlan, Throttle


def plan(*, jitter_ms: int = 0, error_rate: float = 0.0) -> FaultPlan:
    return FaultPlan(
        latency=timedelta(milliseconds=20),
        jitter=timedelta(milliseconds=jitter_ms),
        error_rate=error_rate,
        seed=1,
    )


def test_latency_stays_within_its_jitter_and_above_zero() -> None:
    assert plan().delay_s() == 0.02
    delays = [plan(jitter_ms=10).delay_s() for _ in range(100)]
    assert all(0.01 <= delay <= 0.03 for delay in delays)
    wide = plan(jitter_ms=100)
    assert min(wide.delay_s() for _ in range(200)) == 0.0


def test_faults_come_at_their_rate_in_both_kinds_and_repeat_with_the_seed() -> None:
    faults = plan(error_rate=0.25)
    drawn = [faults.draw() for _ in range(1000)]
    assert 200 < sum(fault is not None for fault in drawn) < 300
    assert set(drawn) == {None, *Fault}
    again = plan(error_rate=0.25)
    assert drawn == [again.draw() for _ in range(1000)]
    assert plan().draw() is None


def test_a_throttle_lets_a_second_of_calls_through_and_tells_the_wait() -> None:
    throttle = Throttle(2.0)
    assert [throttle.wait_s("a", 100.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert throttle.wait_s("b", 100.0) == 0.0
    assert throttle.wait_s("a", 100.5) == 0.0
    assert throttle.wait_s("a", 100.5) == 0.5


def test_a_slow_throttle_lets_the_first_call_through() -> None:
    throttle = Throttle(0.5)
    assert throttle.wait_s("a", 0.0) == 0.0
    assert throttle.wait_s("a", 0.0) == 2.0
    assert Throttle(None).wait_s("a", 0.0) == 0.0


def test_made_up_accounts_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator_faults, "_HIGHEST_ACCOUNTS", 10)
    throttle = Throttle(1.0)
    for number in range(100):
        throttle.wait_s(f"account-{number}", 0.0)
        assert len(throttle._buckets) <= 10
