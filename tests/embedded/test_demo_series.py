"""Numbers of demonstration cards: right for their carrier, and different for every account."""

import pytest

from junhong_cmp.cards.carrier import Carrier, carrier_hint
from junhong_cmp.cards.iccid import normalise
from junhong_cmp.embedded.demo_series import CardSeries
from junhong_cmp.gateway.drivers.table import DRIVERS


@pytest.mark.parametrize("carrier", list(Carrier))
def test_numbers_are_those_of_the_carrier_and_nothing_is_odd_about_them(carrier: Carrier) -> None:
    series = CardSeries(carrier)
    for serial in (0, 1, 9_999_999):
        number = series.iccid(serial)
        assert len(number) == 20
        assert normalise(number, carrier=carrier).warnings == ()
        assert carrier_hint(number) in {carrier, None}
        assert len(series.msisdn(serial)) in {0, 13}
        assert len(series.imsi(serial)) == 15


def test_the_first_series_is_the_one_of_old() -> None:
    assert CardSeries().iccid(0) == "89860426000000000007"
    assert CardSeries().msisdn(7) == "1064800000007"
    assert CardSeries().imsi(7) == "460040000000007"


def test_every_driver_has_a_series_of_its_own() -> None:
    series = {CardSeries.named(Carrier(row.carrier), name) for name, row in DRIVERS.items()} | {CardSeries()}
    first_numbers = {each.iccid(serial)[:19] for each in series for serial in (0, 9_999_999)}
    assert len(first_numbers) == 2 * (len(DRIVERS) + 1)
    assert CardSeries.named(Carrier.CUCC, "unicom") == CardSeries.named(Carrier.CUCC, "unicom")


@pytest.mark.parametrize("serial", [-1, 10_000_000])
def test_a_serial_beyond_the_block_would_be_another_accounts(serial: int) -> None:
    with pytest.raises(ValueError, match="no serial number"):
        CardSeries().iccid(serial)
