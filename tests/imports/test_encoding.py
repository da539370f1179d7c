import codecs
import hashlib
import random

import pytest

from junhong_cmp.imports.encoding import FileFacts, FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits

TEXT = "卡号ICCID,套餐\n89860400000000000001,月包30M\n"


def inspect(data: bytes, *, piece: int = 7, limits: ImportLimits | None = None) -> FileFacts:
    inspector = FileInspector(limits)
    for start in range(0, len(data), piece):
        inspector.feed(data[start : start + piece])
    return inspector.finish()


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"ICCID\n1\n", "utf-8"),
        (b"1", "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (TEXT.encode("gb18030"), "gb18030"),
        (TEXT.encode("gbk"), "gb18030"),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "utf-16"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "utf-16"),
        (("ICCID,备注\n" + "😀\n").encode(), "utf-8"),
        (("ICCID,备注\n" + "😀㐀\n").encode("gb18030"), "gb18030"),
    ],
)
@pytest.mark.parametrize("piece", [1, 2, 3, 64, 1 << 20])
def test_the_encoding_is_found_however_the_bytes_are_cut(data: bytes, encoding: str, piece: int) -> None:
    facts = inspect(data, piece=piece)
    assert facts.encoding == encoding
    assert facts.sha256 == hashlib.sha256(data).hexdigest()
    assert facts.size == len(data)


def test_one_late_byte_decides_for_the_whole_file() -> None:
    rows = b"ICCID,x\n" + b"89860400000000000001,a\n" * 50_000
    assert inspect(rows, piece=65536).encoding == "utf-8"
    assert inspect(rows + "89860400000000000002,移动\n".encode("gb18030"), piece=65536).encoding == "gb18030"


@pytest.mark.parametrize(
    "data", [b"ICCID\n\xff\xff\xff\n", b"ICCID\n" + "卡".encode()[:1], b"\xef\xbb\xbf\xc3\x28"]
)
def test_bytes_in_no_known_encoding_are_refused(data: bytes) -> None:
    with pytest.raises(FileRefusedError, match="无法识别文件编码"):
        inspect(data)


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("piece", [1, 5, 1 << 20])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_utf8_cut_within_a_character_is_damaged_and_not_gb18030(cut: int, piece: int, mark: bytes) -> None:
    data = mark + (TEXT + "89860400000000000002,月包").encode()[:-cut]
    with pytest.raises(FileRefusedError, match="在一个字符中间被截断"):
        inspect(data, piece=piece)


def test_a_file_of_two_encodings_is_refused_with_the_line_where_they_meet() -> None:
    rows = b"89860400000000000003,a\n" * 5000
    data = TEXT.encode() + rows + "89860400000000000002,移动流量包\n".encode("gb18030")
    for piece in (777, 1 << 20):
        with pytest.raises(FileRefusedError, match="混用了两种编码：第 5003 行之前是 UTF-8"):
            inspect(data, piece=piece)


def test_gb18030_that_ends_like_cut_utf8_is_taken_for_what_it_is() -> None:
    assert inspect(b"ICCID,x\n1," + "鍥".encode("gb18030")).encoding == "gb18030"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("piece", [1, 64, 1 << 20])
def test_utf16_needs_no_mark(encoding: str, piece: int) -> None:
    facts = inspect(("一二三表\n" + TEXT * 50).encode(encoding), piece=piece)
    assert (facts.encoding, facts.lines) == (encoding, 101)


@pytest.mark.parametrize(
    ("start", "found"),
    [(b"PK\x03\x04", FileFormat.XLSX), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileFormat.XLS)],
)
def test_workbooks_are_known_by_their_first_bytes(start: bytes, found: FileFormat) -> None:
    data = start + random.Random(1).randbytes(5000)
    facts = inspect(data)
    assert (facts.format, facts.encoding, facts.lines, facts.size) == (found, "", 0, len(data))
    assert facts.sha256 == hashlib.sha256(data).hexdigest()


def test_a_large_workbook_is_refused_before_its_end() -> None:
    inspector = FileInspector(workbook_limits=WorkbookLimits(file_bytes=5000))
    inspector.feed(b"PK\x03\x04" + bytes(2000))
    with pytest.raises(FileRefusedError, match="文件过大"):
        inspector.feed(bytes(5000))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gb18030"])
def test_other_encodings_cut_within_a_character_are_damaged_too(encoding: str) -> None:
    data = (TEXT * 20 + "套").encode(encoding)[:-1]
    with pytest.raises(FileRefusedError, match=f"{encoding.upper()} 文本在一个字符中间被截断"):
        inspect(data)


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(FileRefusedError, match="文件为空"):
        inspect(b"")


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"PK\x05\x06", "压缩文件是空的"),
        (b"\x1f\x8b\x08", "压缩"),
        (b"Rar!\x1a", "压缩"),
        (b"%PDF-1", "PDF"),
        (b"\xef\xbb\xbf\r\n<HTML><body>", "网页"),
        (b"<?xml version='1.0'?>", "XML"),
    ],
)
def test_other_kinds_of_files_are_named(start: bytes, reason: str) -> None:
    with pytest.raises(FileRefusedError, match=reason):
        inspect(start + random.Random(1).randbytes(100))


def test_too_many_bytes_or_lines_are_refused_before_the_end() -> None:
    inspector = FileInspector(ImportLimits(file_bytes=100))
    with pytest.raises(FileRefusedError, match="文件过大"):
        inspector.feed(b"x" * 101)
    for line_end in (b"\n", b"\r\n", b"\r"):
        with pytest.raises(FileRefusedError, match="行数过多"):
            inspect((b"1" + line_end) * 101, limits=ImportLimits(lines=100))


def test_lines_are_counted_in_wide_encodings_too() -> None:
    assert inspect(TEXT.encode("utf-16")).lines == 2
    assert inspect(TEXT.replace("\n", "\r\n").encode("gb18030")).lines == 2
