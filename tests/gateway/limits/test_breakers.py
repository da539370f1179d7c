import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    BreakerOpen,
    CardUnknown,
    GatewayNotConfigured,
    Maintenance,
    NotOffered,
    QuotaExhausted,
    Throttled,
    Transient,
    WrongCard,
)
from junhong_cmp.gateway.limits.breaker import BreakerSettings, BreakerState
from junhong_cmp.gateway.limits.breakers import AccountBreakers

BAD = GatewayAccount(1, "bad", driver="onelink")
GOOD = GatewayAccount(2, "good")
SETTINGS = BreakerSettings(min_calls=10)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def breakers(clock: FakeClock) -> AccountBreakers:
    return AccountBreakers(SETTINGS, clock)


def call(
    breakers: AccountBreakers, error: BaseException | None = None, account: GatewayAccount = BAD
) -> None:
    breakers.settle(account, breakers.ask(account), error)
    if error is not None:
        raise error


def fail(breakers: AccountBreakers, times: int) -> None:
    for _ in range(times):
        with pytest.raises(Transient):
            call(breakers, Transient("网关故障"))


def test_an_outage_is_told_once_from_its_beginning_to_its_end(
    breakers: AccountBreakers, clock: FakeClock
) -> None:
    with capture_logs() as logs:
        fail(breakers, 10)
        for _ in range(100):
            with pytest.raises(BreakerOpen):
                call(breakers)
        for _ in range(5):
            clock.advance(timedelta(minutes=3))
            fail(breakers, 1)
        clock.advance(timedelta(minutes=3))
        call(breakers)
        call(breakers)
    assert [(entry["event"], entry["log_level"], entry["account"]) for entry in logs] == [
        ("网关熔断开启", "warning", "bad"),
        ("网关熔断半开", "info", "bad"),
        ("网关熔断关闭", "info", "bad"),
    ]
    assert (logs[0]["driver"], logs[0]["failure_rate"], logs[0]["calls"]) == ("onelink", 1.0, 10)
    assert logs[2]["open_s"] == 6 * 180


def test_an_open_breaker_rests_the_account_until_the_probe(
    breakers: AccountBreakers, clock: FakeClock
) -> None:
    fail(breakers, 10)
    with pytest.raises(BreakerOpen) as caught:
        call(breakers)
    assert caught.value.reason == "breaker_open"
    assert timedelta(seconds=4) <= caught.value.pause <= timedelta(seconds=6)
    clock.advance(caught.value.pause)
    call(breakers)
    assert breakers.state_of(BAD) is BreakerState.CLOSED


def test_one_account_says_nothing_about_another(breakers: AccountBreakers) -> None:
    fail(breakers, 10)
    call(breakers, account=GOOD)
    assert breakers.state_of(GOOD) is BreakerState.CLOSED
    assert breakers.state_of(BAD) is BreakerState.OPEN


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Transient("x"), BreakerState.OPEN),
        (BadResponse("x"), BreakerState.OPEN),
        (WrongCard("x"), BreakerState.OPEN),
        (CardUnknown("x"), BreakerState.CLOSED),
        (AlreadyDone("x"), BreakerState.CLOSED),
        (BadRequest("x"), BreakerState.CLOSED),
        (Throttled("x"), BreakerState.CLOSED),
        (QuotaExhausted("x"), BreakerState.CLOSED),
        (AuthRejected("x"), BreakerState.CLOSED),
        (Maintenance("x"), BreakerState.CLOSED),
        (GatewayNotConfigured("x"), BreakerState.CLOSED),
        (NotOffered("x"), BreakerState.CLOSED),
        (asyncio.CancelledError(), BreakerState.CLOSED),
        (RuntimeError(), BreakerState.CLOSED),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_only_failures_of_the_carrier_open_it(
    breakers: AccountBreakers, error: BaseException, state: BreakerState
) -> None:
    for _ in range(30):
        with pytest.raises((type(error), BreakerOpen)):
            call(breakers, error)
    assert breakers.state_of(BAD) is state


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Throttled("x"), BreakerState.CLOSED),
        (CardUnknown("x"), BreakerState.CLOSED),
        (NotOffered("x"), BreakerState.OPEN),
        (asyncio.CancelledError(), BreakerState.OPEN),
        (Transient("x"), BreakerState.OPEN),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_probe_that_was_answered_closes_it(
    breakers: AccountBreakers, clock: FakeClock, error: BaseException, state: BreakerState
) -> None:
    fail(breakers, 10)
    clock.advance(10)
    with pytest.raises(type(error)):
        call(breakers, error)
    assert breakers.state_of(BAD) is state
