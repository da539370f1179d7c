from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.drivers.generic_refusals import coded_refusal, refusal_of
from junhong_cmp.gateway.errors import (
    AccountPausing,
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    CardUnknown,
    GatewayError,
    Maintenance,
    QuotaExhausted,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.exchanges import HttpAnswer

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def refusal(status: int, code: object = None, retry_after: str | None = None) -> GatewayError:
    body = b"<html>" if code is None else orjson.dumps({"error": {"code": code, "message": "原因"}})
    return refusal_of(HttpAnswer(status, "application/json", retry_after, body), NOW)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("throttled", Throttled),
        ("quota_exhausted", QuotaExhausted),
        ("auth", AuthRejected),
        ("maintenance", Maintenance),
        ("card_unknown", CardUnknown),
        ("already_done", AlreadyDone),
        ("bad_request", BadRequest),
        ("transient", Transient),
    ],
)
@pytest.mark.parametrize("status", [400, 418, 500])
def test_the_code_decides_whatever_the_status(code: str, expected: type[GatewayError], status: int) -> None:
    error = refusal(status, code)
    assert type(error) is expected
    assert "原因" in str(error)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, BadResponse),
        (400, BadResponse),
        (401, AuthRejected),
        (403, AuthRejected),
        (404, BadResponse),
        (407, AuthRejected),
        (409, BadResponse),
        (429, Throttled),
        (500, Transient),
        (502, Transient),
        (503, Transient),
        (599, Transient),
    ],
)
@pytest.mark.parametrize("code", [None, "no_such_code", 7])
def test_without_a_known_code_the_status_decides_and_never_about_a_card(
    status: int, expected: type[GatewayError], code: object
) -> None:
    assert type(refusal(status, code)) is expected


@pytest.mark.parametrize(
    ("code", "retry_after", "pause"),
    [
        ("throttled", None, timedelta(seconds=1)),
        ("throttled", "30", timedelta(seconds=30)),
        ("throttled", "315360000", timedelta(hours=1)),
        ("throttled", "-1", timedelta(seconds=1)),
        ("quota_exhausted", None, timedelta(hours=1)),
        ("auth", None, timedelta(minutes=10)),
        ("maintenance", "garbage", timedelta(minutes=5)),
        ("maintenance", "Sun, 01 Mar 2026 00:00:10 GMT", timedelta(seconds=10)),
    ],
)
def test_the_account_rests_as_long_as_told(code: str, retry_after: str | None, pause: timedelta) -> None:
    error = refusal(429, code, retry_after)
    assert isinstance(error, AccountPausing)
    assert error.pause == pause


def test_503_with_a_time_is_maintenance() -> None:
    error = refusal(503, None, "120")
    assert isinstance(error, Maintenance)
    assert error.pause == timedelta(minutes=2)


def test_a_message_is_cleaned_before_it_is_shown() -> None:
    error = coded_refusal(
        {"error": {"code": "bad_request", "message": "卡 89860012345678901234\n\x1b[31m" * 50}}
    )
    assert error is not None
    assert "\n" not in str(error)
    assert "8986001" not in str(error)
    assert len(str(error)) < 250


@given(
    status=st.integers(201, 999), body=st.binary(max_size=200), retry_after=st.none() | st.text(max_size=40)
)
def test_no_refusal_breaks_it(status: int, body: bytes, retry_after: str | None) -> None:
    assert isinstance(refusal_of(HttpAnswer(status, "x", retry_after, body), NOW), GatewayError)


@given(
    st.dictionaries(
        st.sampled_from(["error", "code"]), st.none() | st.text() | st.dictionaries(st.text(), st.text())
    )
)
def test_no_error_object_breaks_it(fields: dict[str, object]) -> None:
    assert coded_refusal(fields) is None
