import pytest

from junhong_cmp.cards.zones import find_zone


@pytest.mark.parametrize(
    "name", ["", "Asia", "Mars/Olympus", "/etc/localtime", "../UTC", "a\0b", "Asia/Shanghai "]
)
def test_what_is_no_zone_is_none(name: str) -> None:
    assert find_zone(name) is None


@pytest.mark.parametrize("name", ["Asia/Shanghai", "UTC", "Asia/Kathmandu"])
def test_zones_go_by_their_names(name: str) -> None:
    found = find_zone(name)
    assert found is not None
    assert found.key == name
