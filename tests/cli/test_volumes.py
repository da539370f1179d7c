"""Volumes as people type and read them."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cli.volumes import parse_volume, rough_volume, volume_text


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1PB", "1e3MB", "流量", "9" * 30 + "GB"])
def test_no_volume(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_volume(text)


@given(st.integers(1, 2**50))
def test_a_volume_shown_is_the_volume_itself(kilobytes: int) -> None:
    assert parse_volume(volume_text(kilobytes)) == kilobytes


def test_volumes_are_shown_in_the_unit_people_use() -> None:
    shown = [volume_text(kb) for kb in (None, 1, 1024, 512_000, 1_572_864, 1025, 5 * 1024**2)]
    assert shown == ["未设", "1KB", "1MB", "500MB", "1.5GB", "1025KB", "5GB"]


def test_counted_volumes_are_shown_to_a_tenth() -> None:
    shown = [rough_volume(kb) for kb in (0, 1023, 1024, 512_123, 123_456_789, 5 * 1024**4)]
    assert shown == ["0KB", "1023KB", "1.0MB", "500.1MB", "117.7GB", "5,120.0TB"]
