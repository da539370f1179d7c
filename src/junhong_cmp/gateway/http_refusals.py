"""HTTP statuses → what the caller does, for answers that say no more than their status.

A status is never about a card: a 404 from a misrouted proxy must not make orphans of a whole fleet.
"""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

from junhong_cmp.gateway.errors import (
    AccountPausing,
    AuthRejected,
    BadResponse,
    GatewayError,
    Maintenance,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.exchanges import HttpAnswer
from junhong_cmp.gateway.json_body import excerpt
from junhong_cmp.gateway.retry_after import parse_retry_after

_PAUSES: Final[Mapping[int, type[AccountPausing]]] = {
    HTTPStatus.UNAUTHORIZED: AuthRejected,
    HTTPStatus.FORBIDDEN: AuthRejected,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: AuthRejected,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}
_LOWEST_SERVER_ERROR: Final = 500


def refusal_by_status(answer: HttpAnswer, now: datetime) -> GatewayError:
    """Name the refusal in an answer whose status is not 200, by that status and ``Retry-After`` alone."""
    pause = parse_retry_after(answer.retry_after, now)
    if pausing := _PAUSES.get(answer.status):
        return pausing(f"网关拒绝：HTTP {answer.status}", pause)
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and pause is not None:
        return Maintenance("网关维护中：HTTP 503", pause)
    if answer.status >= _LOWEST_SERVER_ERROR:
        return Transient(f"网关故障：HTTP {answer.status}")
    return BadResponse(f"网关响应无效：HTTP {answer.status}（{excerpt(answer.body)}）")
