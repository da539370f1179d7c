"""Volumes as people read them."""

from junhong_cmp.cards.volumes import rough_volume, volume_text


def test_volumes_are_shown_in_the_unit_people_use() -> None:
    shown = [volume_text(kb) for kb in (None, 1, 1024, 512_000, 1_572_864, 1025, 5 * 1024**2)]
    assert shown == ["未设", "1KB", "1MB", "500MB", "1.5GB", "1025KB", "5GB"]


def test_counted_volumes_are_shown_to_a_tenth() -> None:
    shown = [rough_volume(kb) for kb in (0, 1023, 1024, 512_123, 123_456_789, 5 * 1024**4)]
    assert shown == ["0KB", "1023KB", "1.0MB", "500.1MB", "117.7GB", "5,120.0TB"]
