from datetime import UTC, datetime, timedelta

import pytest

from junhong_cmp.gateway.errors import (
    AuthRejected,
    BadResponse,
    GatewayError,
    Maintenance,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.exchanges import HttpAnswer
from junhong_cmp.gateway.http_refusals import refusal_by_status

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "retry_after", "expected"),
    [
        (204, None, BadResponse),
        (302, None, BadResponse),
        (401, None, AuthRejected),
        (403, None, AuthRejected),
        (404, None, BadResponse),
        (407, None, AuthRejected),
        (429, None, Throttled),
        (500, None, Transient),
        (502, "5", Transient),
        (503, None, Transient),
        (503, "5", Maintenance),
    ],
)
def test_the_status_alone_decides(status: int, retry_after: str | None, expected: type[GatewayError]) -> None:
    assert type(refusal_by_status(HttpAnswer(status, "text/html", retry_after, b"<html>"), NOW)) is expected


def test_the_pause_is_the_one_asked_for() -> None:
    error = refusal_by_status(HttpAnswer(429, "text/html", "7", b""), NOW)
    assert isinstance(error, Throttled)
    assert error.pause == timedelta(seconds=7)
