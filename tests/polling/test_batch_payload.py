import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.batch_payload import BatchPayload, decode_poll
from junhong_cmp.polling.errors import InvalidPayloadError, NewerPayloadError
from junhong_cmp.polling.tasks import PollPayload

IDS = st.integers(0, 2**53)


@given(IDS, st.lists(st.tuples(IDS, IDS, IDS), min_size=1, max_size=5))
def test_a_batch_survives_the_wire(account: int, cards: list[tuple[int, int, int]]) -> None:
    batch = BatchPayload(account, [PollPayload(card, account, claim, due) for card, claim, due in cards])
    assert decode_poll(batch.encode()) == batch


def test_the_wire_format_is_frozen() -> None:
    batch = BatchPayload(2, [PollPayload(1, 2, 30, 4), PollPayload(5, 2, 30, 6)])
    assert batch.encode() == b'{"v":2,"account_id":2,"claim":30,"cards":[[1,30,4],[5,30,6]]}'


def test_a_single_poll_is_told_from_a_batch() -> None:
    single = PollPayload(1, 2, 3, 4)
    assert decode_poll(single.encode()) == single


def test_a_worker_that_knows_single_polls_only_can_read_how_long_the_claims_hold() -> None:
    batch = BatchPayload(2, [PollPayload(1, 2, 30, 4)])
    assert orjson.loads(batch.encode())["claim"] == 30


def test_a_newer_version_is_left_to_others() -> None:
    with pytest.raises(NewerPayloadError) as refused:
        decode_poll(b'{"v":3,"claim":77}')
    assert refused.value.claim == 77


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[2]",
        b'{"v":2}',
        b'{"v":2.0,"account_id":1,"cards":[[1,2,3]]}',
        b'{"v":2,"account_id":1,"cards":[]}',
        b'{"v":2,"account_id":1,"cards":{"1":2}}',
        b'{"v":2,"account_id":1,"cards":[[1,2]]}',
        b'{"v":2,"account_id":1,"cards":[[1,2,3],null]}',
        b'{"v":2,"account_id":"1","cards":[[1,2,3]]}',
        b'{"v":2,"account_id":1,"cards":[[1,2,-3]]}',
        b'{"v":2,"account_id":1,"cards":[[true,2,3]]}',
        b'{"v":"2"}',
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        decode_poll(data)
    assert not isinstance(refused.value, NewerPayloadError)


@given(st.binary(max_size=60))
def test_no_bytes_make_decoding_fail_otherwise(data: bytes) -> None:
    with pytest.raises(InvalidPayloadError):
        decode_poll(data)
