import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.xml_stream import XmlStream


def events(*pieces: bytes) -> list[str]:
    seen: list[str] = []
    stream = XmlStream(
        lambda tag, _: seen.append(f"<{tag}>"), lambda tag: seen.append(f"</{tag}>"), max_text=10
    )
    for _ in stream.run(pieces):
        seen += stream.texts
        stream.texts.clear()
    return seen


@pytest.mark.parametrize("prefix", ["", "x:"])
def test_elements_come_without_their_prefix(prefix: str) -> None:
    data = f'<{prefix}a xmlns:x="u"><{prefix}b>t</{prefix}b></{prefix}a>'.encode()
    assert events(data) == ["<a>", "<b>", "</b>", "</a>", "t"]


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    ],
)
def test_a_document_type_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefusedError, match="DOCTYPE"):
        events(data)


XML = "<?xml version='1.0' encoding='{}'?><a/>"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<a>",
        b"<a></b>",
        b"\xff",
        b"<a>&b;</a>",
        XML.format("nonsense").encode(),
        XML.format("gbk").encode(),
    ],
)
def test_what_is_not_well_formed_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefusedError, match="XML"):
        events(data)


def test_a_fault_of_a_callback_is_not_blamed_on_the_file() -> None:
    names: dict[str, None] = {}
    stream = XmlStream(lambda tag, _: names[tag], lambda _: None, max_text=10)
    with pytest.raises(KeyError):
        list(stream.run([b"<a/>"]))


@pytest.mark.parametrize("prefix", ["", "x:"])
def test_a_piece_that_was_taken_is_parsed_for_its_faults_alone(prefix: str) -> None:
    seen: list[str] = []
    stream = XmlStream(lambda tag, _: seen.append(tag), lambda tag: seen.append(f"/{tag}"), max_text=10)
    pieces = [f"<{prefix}a xmlns:x='u'><{prefix}b/>text", "<c>text</c>", f"<{prefix}d/></{prefix}a>"]
    data = [piece.encode() for piece in pieces]
    for _ in stream.run(data, lambda piece: piece == data[1]):
        pass
    assert (seen, stream.texts) == (["a", "b", "/b", "d", "/d", "/a"], ["text"])
    assert stream.parsed == sum(map(len, data))
    with pytest.raises(FileRefusedError, match="XML"):
        list(XmlStream(lambda *_: None, lambda _: None, max_text=10).run([b"<a>", b"<c>&d;</c>"], bool))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"<a/>", True),
        (b"<?xml version='1.0'?><a/>", True),
        (XML.format("UTF-8").encode(), True),
        (XML.format("iso-8859-1").encode(), False),
        (XML.format("utf-16").encode("utf-16"), False),
        ("<a/>".encode("utf-16"), False),
        ("<\u4e00/>".encode("utf-16-be"), False),
    ],
)
def test_it_tells_whether_its_bytes_are_utf8(head: bytes, *, expected: bool) -> None:
    stream = XmlStream(lambda *_: None, lambda _: None, max_text=10)
    next(stream.run([head]))
    assert stream.in_utf8 is expected


def test_a_text_without_end_is_not_held() -> None:
    stream = XmlStream(lambda *_: None, lambda _: None, max_text=10)
    run = stream.run([b"<a>", *[b"x" * 65536] * 200])
    for _ in range(200):
        next(run)
    assert sum(map(len, stream.texts)) < 2 * 1024 * 1024


@given(st.binary(max_size=100))
def test_any_bytes_end_or_are_refused(data: bytes) -> None:
    try:
        events(b"<a>" + data)
    except FileRefusedError:
        return
