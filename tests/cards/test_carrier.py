import pytest

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier, carrier_hint


@pytest.mark.parametrize(
    ("prefixes", "carrier"),
    [
        (("898600", "898602", "898604", "898607", "898608"), Carrier.CMCC),
        (("898601", "898606", "898609"), Carrier.CUCC),
        (("898603", "898611"), Carrier.CTCC),
        (("898615",), Carrier.CBN),
        (("898699", "895201", ""), None),
    ],
)
def test_prefixes_hint_at_carriers(prefixes: tuple[str, ...], carrier: Carrier | None) -> None:
    for prefix in prefixes:
        assert carrier_hint(prefix + "12345678901234") is carrier


def test_every_carrier_has_a_name() -> None:
    assert set(CARRIER_NAMES) == set(Carrier)
