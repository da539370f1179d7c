import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.errors import InvalidPayloadError
from junhong_cmp.polling.tasks import PollPayload, TaskType

IDS = st.integers(0, 2**53)


@given(IDS, IDS, IDS, IDS)
def test_a_payload_survives_the_wire(card: int, account: int, claim: int, due: int) -> None:
    payload = PollPayload(card, account, claim, due)
    assert PollPayload.decode(payload.encode()) == payload


def test_the_wire_format_is_frozen() -> None:
    assert PollPayload(1, 2, 3, 4).encode() == b'{"v":1,"card_id":1,"account_id":2,"claim":3,"due":4}'
    assert PollPayload.decode(b'{"claim":3,"card_id":1,"v":1,"account_id":2,"new":[]}') == PollPayload(
        1, 2, 3
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[1]",
        b'"v"',
        b'{"v":2,"card_id":1,"account_id":2,"claim":3}',
        b'{"v":1,"card_id":1,"account_id":2}',
        b'{"v":1,"card_id":"1","account_id":2,"claim":3}',
        b'{"v":1,"card_id":true,"account_id":2,"claim":3}',
        b'{"v":1,"card_id":-1,"account_id":2,"claim":3}',
        b'{"v":1,"card_id":1.5,"account_id":2,"claim":3}',
        b"\xff",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPayloadError):
        PollPayload.decode(data)


@given(st.binary(max_size=60))
def test_no_bytes_make_decoding_fail_otherwise(data: bytes) -> None:
    with pytest.raises(InvalidPayloadError):
        PollPayload.decode(data)


def test_the_kind_is_what_columns_and_settings_are_named_after() -> None:
    assert TaskType.POLLING_CARDDATA.kind == "carddata"
