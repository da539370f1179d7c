"""Durations and weights in and out."""

from datetime import timedelta

import pytest

from junhong_cmp.config.values import format_duration, parse_duration, parse_weights, secret_parts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("8", 8),
        (8, 8),
        (0.5, 0.5),
        ("8s", 8),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "8 s", "-8s", "8x", "1e3", "８s", True, "9" * 400 + "d"])
def test_bad_durations(text: object) -> None:
    with pytest.raises(ValueError, match="时长"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["8s", "500ms", "90m", "2d", "0s", "12h"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert format_duration(parse_duration(text)) == text


def test_weights() -> None:
    assert parse_weights("polling=6, import=2") == {"polling": 6, "import": 2}
    assert parse_weights({"polling": 6}) == {"polling": 6}


@pytest.mark.parametrize("text", ["", "polling", "polling=-1", "polling=1.5", "=1", "polling=²"])
def test_bad_weights(text: str) -> None:
    with pytest.raises(ValueError, match="权重为正整数"):
        parse_weights(text)


def test_secret_parts_of_an_address() -> None:
    assert set(secret_parts("postgresql://u:p%40w@h/db")) == {"p%40w", "p@w"}
    assert set(secret_parts("redis-sentinel://:pw@a:1,b:2/0?master=m&sentinel_password=sp")) == {"pw", "sp"}
    assert secret_parts("redis://h/0") == []
    assert secret_parts("plain") == ["plain"]
