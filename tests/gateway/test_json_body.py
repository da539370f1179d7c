from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.json_body import decode_object, excerpt

CORPUS = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b'{"a":1',
    b'{"a":1}}',
    b'\xef\xbb\xbf{"a":1}',
    '{"名":"卡"}'.encode("gb18030"),
    '{"a":1}'.encode("utf-16"),
    b'{"a":1,"a":2}',
    b'{"x":{"a":1,"a":2}}',
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":1e' + b"9" * 30 + b"}",
    b'{"a":' + b"[" * 200_000,
    b'{"a":' * 100_000,
    b"<html>502</html>",
]


@pytest.mark.parametrize("body", CORPUS, ids=lambda body: repr(body[:12]))
def test_what_is_not_a_strict_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadResponse, match="网关响应无效"):
        decode_object(body)


def test_fractions_stay_exact() -> None:
    assert decode_object(b'{"used":0.1,"n":3,"big":1e999}') == {
        "used": Decimal("0.1"),
        "n": 3,
        "big": Decimal("1e999"),
    }


def test_an_excerpt_is_one_short_line_without_whole_numbers() -> None:
    body = "bad\r\n\x1b[31m\u202e card 89860012345678901234 phone 13800001234 id 898604B7192270274525 "
    shown = excerpt((body + "x" * 1000).encode())
    assert shown.startswith("bad [31m card ***1234 phone ***1234 id ***4525 xxx")
    assert len(shown) == 200
    assert shown.isprintable()


@given(st.binary(max_size=300))
@example("\ufeff\u2028".encode())
def test_an_excerpt_of_anything_is_printable(body: bytes) -> None:
    assert len(excerpt(body)) <= 200
    assert not any(character in excerpt(body) for character in "\r\n\x1b\x00\u2028\u202e")


@given(st.binary(max_size=400))
def test_no_bytes_break_the_parser(body: bytes) -> None:
    with suppress(BadResponse):
        assert isinstance(decode_object(body), dict)
