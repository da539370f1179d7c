import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.imports import workbooks

from junhong_cmp.imports.compound_file import CompoundFile
from junhong_cmp.imports.errors import FileRefusedError

BOOK = workbooks.xls({"卡": [["ICCID"], *[[f"8986040000{n:010d}"] for n in range(3000)]]})


def test_streams_are_listed_and_read() -> None:
    opened = CompoundFile(BOOK)
    assert "Workbook" in opened
    assert "EncryptedPackage" not in opened
    stream = opened.read("Workbook")
    assert struct.unpack_from("<HH", stream) == (0x0809, 16)
    assert len(stream) > 50_000
    with pytest.raises(FileRefusedError, match="已损坏"):
        opened.read("Book")


def test_an_encrypted_workbook_shows_itself_by_its_streams() -> None:
    assert "EncryptedPackage" in CompoundFile(workbooks.encrypted())


def test_a_chain_that_bites_its_tail_is_refused() -> None:
    data = bytearray(BOOK)
    (table,) = struct.unpack_from("<I", data, 76)
    for sector in range(128):
        struct.pack_into("<I", data, (table + 1) * 512 + 4 * sector, 0)
    with pytest.raises(FileRefusedError, match="已损坏"):
        CompoundFile(bytes(data)).read("Workbook")


@pytest.mark.parametrize("size", [0, 8, 100, 511, 512, 513, 1024, 5000])
def test_a_cut_file_is_refused(size: int) -> None:
    with pytest.raises(FileRefusedError, match="已损坏"):
        CompoundFile(BOOK[:size]).read("Workbook")


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=20))
def test_any_damage_gives_a_stream_or_a_refusal(damage: list[tuple[int, int]]) -> None:
    data = bytearray(workbooks.xls({"卡": [["ICCID"]]}))
    for at, value in damage:
        data[at] = value
    try:
        CompoundFile(bytes(data)).read("Workbook")
    except FileRefusedError:
        return
