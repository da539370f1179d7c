import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.account_store import NewAccount
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cli.account_fields import FIELDS, AccountField

ACCOUNT = NewAccount(code="demo", carrier=Carrier.CMCC, name="移动一号")


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.key)
def test_what_is_shown_can_be_typed(field: AccountField) -> None:
    assert field.read(field.shown(ACCOUNT)) == getattr(ACCOUNT, field.attribute)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("name", ["移动 一号", "x" * 100], ["", " ", "a\nb", "x" * 101]),
        ("carrier", ["cmcc", "other"], ["CMCC", "移动", ""]),
        ("driver", ["generic", "onelink"], ["one", "none", ""]),
        (
            "base_url",
            ["https://gateway.internal", "http://10.0.0.8:8080/api", "none"],
            [
                "gateway.internal",
                "ftp://gateway",
                "https://",
                "https://user:secret@gateway",
                "https://gateway/?token=1",
                "https://169.254.169.254/",
                "https://gateway:port",
                f"https://gateway/{'x' * 500}",
                "",
            ],
        ),
        ("credential_ref", ["cmcc-01", "移动一号", "none"], ["", "two words", "x" * 101, "a\tb"]),
        ("tz", ["Asia/Shanghai", "UTC"], ["", "Asia/Nowhere", "../etc/passwd", "Asia"]),
        ("billing_day", ["1", "31"], ["0", "32", "27.5", "-1", "٣", "1_0", ""]),
        ("usage_unit", ["KB", "MB"], ["kb", "PB", ""]),
        ("qps", ["0.001", "50", "1000000"], ["0", "nan", "inf", "-1", "1_0", "fast", ""]),
        ("concurrency", ["1", "10000"], ["0", "10001", "9" * 5000]),
        ("daily_quota", ["0", "1000000000000", "none"], ["-1", "1000000000001", "1e6", ""]),
        ("monthly_quota", ["0", "none"], ["many"]),
        ("quota_per", ["call", "card"], ["sim"]),
        ("per_card_min_gap_s", ["0", "2592000"], ["2592001", "3m"]),
        ("operation_min_gap_s", ["0", "86400"], ["86401"]),
        ("usage_lag_s", ["0", "86400"], ["-1", "604801", "1d"]),
        ("batch_size", ["1", "100"], ["0"]),
        ("protect_enabled", ["true", "OFF", "yes"], ["1", "是", ""]),
    ],
)
def test_values_within_and_out_of_the_range(key: str, good: list[str], bad: list[str]) -> None:
    for text in good:
        FIELDS[key].read(text)
    for text in bad:
        with pytest.raises(ValueError):  # noqa: PT011 - its text is never shown
            FIELDS[key].read(text)


@given(st.sampled_from(sorted(FIELDS)), st.text())
def test_no_text_does_more_than_be_refused(key: str, text: str) -> None:
    try:
        value = FIELDS[key].read(text)
    except ValueError:
        return
    assert value is not None or text == "none"


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.key)
def test_every_key_says_what_it_takes(field: AccountField) -> None:
    assert re.search(r"\w", field.takes)
