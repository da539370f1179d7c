import codecs
import hashlib
import random

import pytest

from junhong_cmp.imports.encoding import FileFacts, FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits

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


def test_an_odd_utf16_file_is_refused() -> None:
    with pytest.raises(FileRefusedError, match="无法识别文件编码"):
        inspect(codecs.BOM_UTF16_LE + b"I\0C")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(FileRefusedError, match="文件为空"):
        inspect(b"")


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"PK\x03\x04", "xlsx"),
        (b"\xd0\xcf\x11\xe0", "xls"),
        (b"\x1f\x8b\x08", "压缩"),
        (b"%PDF-1", "PDF"),
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
