import pytest

from junhong_cmp.leadership.candidate import Candidate


def test_the_identity_is_never_the_name() -> None:
    one, two = Candidate.of_this_process("甲"), Candidate.of_this_process("甲")
    assert one.holder != two.holder
    assert "甲" not in one.holder


def test_an_entry_is_read_back() -> None:
    one = Candidate.of_this_process('名"称')
    assert Candidate.decode(one.encode().encode()) == one


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"[]",
        b"null",
        b"{}",
        b'{"holder":"h"}',
        b"\xff",
        b'{"holder":"h","name":"n","host":"h","pid":1,"since":1e999}',
    ],
)
def test_what_is_no_entry_is_none(text: bytes) -> None:
    assert Candidate.decode(text) is None
