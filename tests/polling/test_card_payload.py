"""Payloads of tasks about one card: what is written is read, and nothing else."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.model import StopReason
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.errors import InvalidPayloadError
from junhong_cmp.polling.operation_rules import OperationKind

NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=100)


@given(
    card_id=st.integers(1, 2**63 - 1),
    kind=st.sampled_from(OperationKind),
    reason=st.sampled_from([reason for reason in StopReason if reason is not StopReason.NONE]),
    request_id=NAMES,
    requested_by=st.one_of(st.just(""), NAMES),
)
def test_what_is_written_is_read(
    card_id: int, kind: OperationKind, reason: StopReason, request_id: str, requested_by: str
) -> None:
    payload = CardPayload(card_id, Order(kind, request_id, reason, requested_by))
    assert CardPayload.decode(payload.encode()) == payload
    assert CardPayload.decode(CardPayload(card_id).encode()) == CardPayload(card_id)


def test_what_others_enqueue_may_be_short_and_carry_more() -> None:
    data = b'{"v":1,"card_id":7,"later":true,"order":{"kind":"stop","request_id":"r"}}'
    assert CardPayload.decode(data) == CardPayload(7, Order(OperationKind.STOP, "r"))


@pytest.mark.parametrize(
    "fields",
    [
        {"v": 2, "card_id": 1},
        {"v": 1},
        {"v": 1, "card_id": 0},
        {"v": 1, "card_id": True},
        {"v": 1, "card_id": "1"},
        {"v": 1, "card_id": 1, "order": {}},
        {"v": 1, "card_id": 1, "order": "stop"},
        {"v": 1, "card_id": 1, "order": {"kind": "cancel", "request_id": "r"}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": ""}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": 5}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": "a\nb"}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": "r" * 101}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": "r", "reason": "none"}},
        {"v": 1, "card_id": 1, "order": {"kind": "stop", "request_id": "r", "reason": "because"}},
    ],
)
def test_what_cannot_be_right_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidPayloadError):
        CardPayload.decode(orjson.dumps(fields))


@given(st.binary(max_size=50))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        payload = CardPayload.decode(data)
    except InvalidPayloadError:
        return
    assert payload.card_id > 0
