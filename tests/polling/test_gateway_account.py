"""What a call is told of the account and the card."""

from datetime import timedelta

import pytest
from tests.polling.samples import make_account, make_card

from junhong_cmp.polling.gateway_account import card_ref, gateway_account


def test_an_account_brings_its_limits_and_its_calendar() -> None:
    account = make_account(
        batch_size=50, billing_day=27, operation_min_gap=timedelta(minutes=5), usage_lag=timedelta(hours=6)
    )
    told = gateway_account(account)
    assert (told.batch_size, told.billing_day, told.tz) == (50, 27, "Asia/Shanghai")
    assert told.change_rest == timedelta(minutes=5)
    assert told.usage_lag == timedelta(hours=6)


@pytest.mark.parametrize(
    ("orphan", "msisdn", "denials", "by_msisdn"),
    [
        (False, "13800000000", 3, False),
        (True, "13800000000", 5, True),
        (True, "13800000000", 6, False),
        (True, None, 5, False),
    ],
)
def test_a_denied_card_is_asked_for_by_either_number_in_turn(
    *, orphan: bool, msisdn: str | None, denials: int, by_msisdn: bool
) -> None:
    card = make_card(orphan=orphan, msisdn=msisdn, not_found_count=denials)
    assert card_ref(card).by_msisdn is by_msisdn
