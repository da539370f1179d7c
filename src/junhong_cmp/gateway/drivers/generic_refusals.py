"""Refusals of the generic contract → what the caller does.

The ``error.code`` of the body decides. Without one (a proxy answered, or something
broke) the HTTP status decides, and never about a card: a 404 from a misrouted proxy
must not make orphans of a whole fleet.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

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
from junhong_cmp.gateway.http_refusals import refusal_by_status
from junhong_cmp.gateway.json_body import decode_object, excerpt
from junhong_cmp.gateway.retry_after import parse_retry_after

_PAUSES: Final[Mapping[str, type[AccountPausing]]] = {
    "throttled": Throttled,
    "quota_exhausted": QuotaExhausted,
    "auth": AuthRejected,
    "maintenance": Maintenance,
}
_CARD_ERRORS: Final[Mapping[str, type[GatewayError]]] = {
    "card_unknown": CardUnknown,
    "already_done": AlreadyDone,
    "bad_request": BadRequest,
    "transient": Transient,
}


def refusal_of(answer: HttpAnswer, now: datetime) -> GatewayError:
    """Name the refusal in an answer whose status is not 200."""
    pause = parse_retry_after(answer.retry_after, now)
    try:
        fields = decode_object(answer.body)
    except BadResponse:
        return refusal_by_status(answer, now)
    return coded_refusal(fields, pause) or refusal_by_status(answer, now)


def coded_refusal(fields: Mapping[str, object], pause: timedelta | None = None) -> GatewayError | None:
    """Name the refusal in a body or a batch item by its ``error.code``; None if it has none we know."""
    error = fields.get("error")
    if not isinstance(error, dict) or not isinstance(code := error.get("code"), str):
        return None
    message = error.get("message")
    said = f"：{excerpt(message.encode(errors='replace'))}" if isinstance(message, str) and message else ""
    if pausing := _PAUSES.get(code):
        return pausing(f"网关拒绝（{code}）{said}", pause)
    if card_error := _CARD_ERRORS.get(code):
        return card_error(f"网关拒绝（{code}）{said}")
    return None
