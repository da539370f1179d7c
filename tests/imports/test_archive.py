import io
import struct
import warnings
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.imports.workbooks import archive

from junhong_cmp.imports.archive import Archive
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import WorkbookLimits

SMALL = WorkbookLimits(
    entries=5, inflated_bytes=100_000, ratio=50, ratio_from_bytes=20_000, part_bytes=50_000
)


def open_archive(data: bytes, limits: WorkbookLimits = SMALL) -> Archive:
    return Archive(io.BytesIO(data), limits)


def noise(size: int) -> bytes:
    return bytes((n * n * 7919 >> 5) % 251 for n in range(size))


def test_parts_are_found_whatever_their_case_and_slashes() -> None:
    with open_archive(archive({"XL\\Workbook.xml": "book", "a": "x"})) as opened:
        assert "xl/workbook.xml" in opened
        assert "/xl/WORKBOOK.xml" in opened
        assert "b" not in opened
        assert opened.read("xl/workbook.xml") == b"book"
        with pytest.raises(FileRefusedError, match="缺少 b"):
            opened.read("b")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (archive({str(n): "x" for n in range(6)}), "含有 6 个部分"),
        (archive({"a": noise(60_000), "b": noise(60_000)}), "解压后超过"),
        (archive({"a": b" " * 30_000}), "压缩炸弹"),
        (archive({"a": "1", "A": "2"}), "同名"),
        (b"PK\x03\x04", "已损坏"),
        (archive({"a": "x" * 100})[:-30], "已损坏"),
    ],
    ids=["many parts", "too much", "a bomb", "one name twice", "a stump", "an end cut off"],
)
def test_hostile_and_damaged_archives_are_refused_before_they_are_inflated(data: bytes, reason: str) -> None:
    with pytest.raises(FileRefusedError, match=reason):
        open_archive(data)


def test_other_compressions_are_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as zipped:
        zipped.writestr("a", "x" * 1000)
    with pytest.raises(FileRefusedError, match="压缩方法"):
        open_archive(out.getvalue())


def test_encrypted_parts_are_named_as_such() -> None:
    data = bytearray(archive({"a": "x"}))
    flags = data.index(b"PK\x01\x02") + 8
    data[flags] |= 1
    with pytest.raises(FileRefusedError, match="密码"):
        open_archive(bytes(data))


def test_a_part_that_is_larger_than_declared_is_not_inflated_further() -> None:
    data = bytearray(archive({"a": noise(1000)}))
    for record, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(record) + offset, 10)
    with open_archive(bytes(data)) as opened, pytest.raises(FileRefusedError, match="已损坏"):
        opened.read("a")


def test_what_is_inflated_is_counted_over_all_reads() -> None:
    with open_archive(archive({"a": noise(40_000)})) as opened:
        for _ in range(5):
            opened.read("a")
        with pytest.raises(FileRefusedError, match="解压后超过"):
            opened.read("a")


def test_a_part_held_whole_is_capped() -> None:
    with (
        open_archive(archive({"a": noise(60_000)})) as opened,
        pytest.raises(FileRefusedError, match="目录部分过大"),
    ):
        opened.read("a")


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 255))
def test_any_damage_gives_bytes_or_a_refusal(junk: bytes, at: int, value: int) -> None:
    whole = bytearray(archive({"a": noise(200), "b": "x"}))
    whole[at % len(whole)] = value
    for data in (b"PK\x03\x04" + junk, bytes(whole)):
        with warnings.catch_warnings(action="ignore"):  # zipfile warns of duplicate names while it reads
            try:
                with open_archive(data) as opened:
                    opened.read("a")
            except FileRefusedError:
                continue
