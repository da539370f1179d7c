from hypothesis import given
from hypothesis import strategies as st
from tests.polling.samples import make_account

from junhong_cmp.polling.account_load import AccountLoad
from junhong_cmp.polling.pacer import AccountPacer


@given(
    st.floats(0.05, 5000),
    st.lists(st.tuples(st.floats(0.01, 3), st.integers(0, 10_000)), min_size=1, max_size=50),
)
def test_never_faster_than_the_rate_plus_one_second(qps: float, steps: list[tuple[float, int]]) -> None:
    account = make_account(qps=qps, concurrency=10**6)
    pacer, now, claimed = AccountPacer(qps, 0.0), 0.0, 0
    for wait, wanted in steps:
        now += wait
        claims = min(wanted, pacer.allowance(account, now, AccountLoad(0, qps)))
        pacer.spend(claims)
        claimed += claims
    assert claimed <= qps * now + max(1.0, qps) + 1


def test_the_wait_is_until_the_next_token() -> None:
    account, idle = make_account(qps=2.0), AccountLoad(0, 2.0)
    pacer = AccountPacer(2.0, 0.0)
    assert pacer.allowance(account, 0.0, idle) == 1
    pacer.spend(1)
    assert pacer.seconds_to_next() == 0.5
    assert pacer.allowance(account, 0.4, idle) == 0
    assert pacer.allowance(account, 0.5, idle) == 1


def test_what_is_in_flight_limits_the_claims() -> None:
    account = make_account(qps=1000.0, concurrency=10)
    pacer = AccountPacer(1000.0, 0.0)
    assert pacer.allowance(account, 1.0, AccountLoad(0, 1000.0)) == 20
    assert pacer.allowance(account, 1.0, AccountLoad(9, 1000.0)) == 11
    assert pacer.allowance(account, 1.0, AccountLoad(10, 1000.0)) == 0


def test_a_changed_rate_counts_at_once() -> None:
    pacer = AccountPacer(1.0, 0.0)
    assert pacer.allowance(make_account(qps=50.0), 1.0, AccountLoad(0, 50.0)) == 50


def test_a_rate_the_carrier_lowered_counts_not_the_configured_one() -> None:
    pacer = AccountPacer(50.0, 0.0)
    assert pacer.allowance(make_account(qps=50.0), 1.0, AccountLoad(0, 5.0)) == 5
