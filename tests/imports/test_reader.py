import csv
import io
import tracemalloc
from collections import deque
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.encoding import FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.header import Field
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.reader import CardFileReader
from junhong_cmp.imports.sheet_row import SheetRow

A, B, C = "89860400000000000001", "89860400000000000002", "89860400000000000003"


def read(data: bytes, *, piece: int = 11, limits: ImportLimits | None = None) -> list[SheetRow]:
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    inspector = FileInspector(limits)
    for one in pieces:
        inspector.feed(one)
    reader = CardFileReader(inspector.finish().encoding, limits)
    return list(reader.rows(pieces))


def iccids(data: str | bytes, *, encoding: str = "utf-8") -> list[tuple[int, str]]:
    rows = read(data if isinstance(data, bytes) else data.encode(encoding))
    return [(row.line, row.fields.get(Field.ICCID, "")) for row in rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_encoding_delimiter_and_line_end(encoding: str, delimiter: str, line_end: str) -> None:
    text = line_end.join(
        delimiter.join(row) for row in [("套餐", "集成电路卡号", "接入号"), ("月包", A, "1064"), ("", B, "")]
    )
    first, second = read(text.encode(encoding))
    assert first.fields == {Field.PLAN: "月包", Field.ICCID: A, Field.MSISDN: "1064"}
    assert (first.line, second.line, second.fields[Field.ICCID]) == (2, 3, B)


def test_titles_separators_and_blank_lines_above_the_header() -> None:
    assert iccids(f"某公司发卡清单,,\n\n sep=,\n制表：2026年\nICCID,套餐\n\n,\n{A},x\n , \n{B},y") == [
        (8, A),
        (10, B),
    ]


def test_a_header_with_a_quoted_break() -> None:
    assert iccids(f'"接入号\n（MSISDN）";"卡号\nICCID"\n1;{A}') == [(4, A)]


def test_a_stray_quote_above_the_header_hides_nothing() -> None:
    assert iccids(f'"清单\nICCID,套餐\n{A},x\n{B},y') == [(3, A), (4, B)]
    many = "".join(f"{int(A) + n},x\n" for n in range(60))
    assert len(iccids(f'"清单\nICCID,套餐\n{many}')) == 60


def test_a_file_of_one_column() -> None:
    assert iccids(f"ICCID\n{A}\n{B}") == [(2, A), (3, B)]


def test_mixed_line_ends_and_no_last_line_end() -> None:
    assert iccids(f"ICCID,x\r\n{A},1\n{B},2\r{C},3") == [(2, A), (3, B), (4, C)]


def test_short_rows_lack_the_cell_and_long_rows_are_marked() -> None:
    rows = read(f"套餐,ICCID\n月包\n月包,{A},,\n月包,{B},多余\n".encode())
    assert Field.ICCID not in rows[0].fields
    assert [row.surplus_cells for row in rows] == [False, False, True]


def test_faulty_rows_keep_their_line_number_and_spare_the_others() -> None:
    limits = ImportLimits(line_chars=100, columns=5)
    data = f'ICCID,x\n{A},1\n{"9" * 500}\n1,2,3,4,5,6,7\n{B},"开\n{C},3\n'.encode()
    rows = read(data, limits=limits)
    assert [(row.line, row.fault) for row in rows] == [
        (2, None), (3, "行过长"), (4, "列数过多"), (5, "引号未闭合"), (6, None)
    ]  # fmt: skip
    assert rows[1].excerpt == "9" * 100


@pytest.mark.parametrize(
    "data", [b"a,b\n1,2\n", b"\n\n\n", "卡号,套餐\n".encode("gb18030"), A.encode(), b"x\n" * 500]
)
def test_a_file_without_iccid_column_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefusedError, match="找不到 ICCID 列"):
        read(data)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_utf16_without_mark_is_read(encoding: str, piece: int) -> None:
    text = f"某公司一览表\r\n卡号ICCID\t套餐\r\n{A}\t一\r\n{B}\t丁\r\n"
    rows = read(text.encode(encoding), piece=piece)
    assert [(row.line, row.fields[Field.ICCID]) for row in rows] == [(3, A), (4, B)]


@pytest.mark.parametrize("start", [b"\0", b"ICC\0ID", b"\0\0\0\0"])
def test_a_binary_file_is_refused_as_such(start: bytes) -> None:
    with pytest.raises(FileRefusedError, match="空字符"):
        read(start + f"ICCID\n{A}\n".encode())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("序号,接入号,套餐\n1,1064,月包\n", "第 1 行：序号、接入号、套餐"),
        ("清单\n\n序号;卡号;IMSI\n", "第 3 行：序号、卡号、IMSI"),
        (" \n\t\n", "没有可读的内容"),
        ("x\x07y\n", r"第 1 行：x\\u0007y"),
        (f"{A},1064000000001\n{B},1064000000002\n", f"第 1 行：…{A[-4:]}、…0001$"),
        ("ICCID" + "," * 300 + f"\n{A}\n", "第 1 行列数过多，无法作为表头识别；最像表头的是"),
        ("ICCID" + "," * 70_000, "第 1 行行过长，无法作为表头识别$"),
        ('"ICCID,套餐\n', "第 1 行引号未闭合，无法作为表头识别$"),
    ],
)
def test_a_refusal_names_the_headers_found(text: str, found: str) -> None:
    with pytest.raises(FileRefusedError, match=found):
        read(text.encode())


def test_columns_that_mean_nothing_are_named() -> None:
    reader = CardFileReader("utf-8")
    assert list(reader.rows(["备注,ICCID,,入库日期,卡号,手机号\n".encode()])) == []
    assert reader.ignored_columns == ("备注", "入库日期", "手机号")


def test_nul_in_a_data_row_reaches_the_row_rules() -> None:
    assert iccids(f"ICCID\n{A}\0\n{B}\n") == [(2, A + "\0"), (3, B)]


def test_a_million_columns_cost_their_row_or_the_file() -> None:
    wide = "x," * 1_000_000
    rows = read(f"ICCID,x\n{A},1\n{wide}\n{B},2\n".encode(), piece=65536)
    assert [(row.line, row.fault) for row in rows] == [(2, None), (3, "行过长"), (4, None)]
    with pytest.raises(FileRefusedError, match="找不到 ICCID 列"):
        read(f"{wide}ICCID\n{A}\n".encode(), piece=65536)


def test_a_gigabyte_line_and_a_long_file_hold_no_memory() -> None:
    row = f"{A},套餐\n".encode()
    block = row * (65536 // len(row))
    rows = CardFileReader("utf-8").rows(chain([b"ICCID,x\n", block], *repeat([b"9" * 65536, block], 50)))
    next(rows)
    tracemalloc.start()
    deque(rows, maxlen=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 1024 * 1024


def test_a_row_is_given_out_before_the_next_piece_is_asked_for() -> None:
    asked: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number, piece in enumerate([b"ICCID\n", f"{A}\n{B}\n".encode(), f"{C}\n".encode()]):
            asked.append(number)
            yield piece

    rows = CardFileReader("utf-8").rows(pieces())
    assert [(row.line, len(asked)) for row in rows] == [(2, 2), (3, 2), (4, 3)]


CELL = st.text(st.characters(codec="gb18030", exclude_characters="\r\0\ufeff"), max_size=8)


@given(
    rows=st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=8),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "gb18030", "utf-16"]),
    piece=st.integers(1, 40),
)
def test_what_a_csv_writer_writes_is_read_back(
    rows: list[list[str]], delimiter: str, encoding: str, piece: int
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["套餐", "ICCID"], *rows])
    got = [
        (row.fields[Field.PLAN], row.fields[Field.ICCID])
        for row in read(out.getvalue().encode(encoding), piece=piece)
    ]
    assert got == [(plan, iccid) for plan, iccid in rows if plan.strip() or iccid.strip()]


PLAIN_CELL = st.text(st.characters(codec="utf-8", exclude_characters='",\n\r\0\ufeff'), max_size=4)


@given(st.lists(st.lists(PLAIN_CELL, min_size=1, max_size=6), max_size=8))
def test_quotes_that_were_not_needed_change_nothing(rows: list[list[str]]) -> None:
    def write(quoting: Literal[0, 1]) -> list[SheetRow]:
        out = io.StringIO("套餐,备注,ICCID,批次\n")
        out.seek(0, io.SEEK_END)
        csv.writer(out, lineterminator="\n", quoting=quoting).writerows(rows)
        return read(out.getvalue().encode(), limits=ImportLimits(columns=5))

    plain, quoted = write(csv.QUOTE_MINIMAL), write(csv.QUOTE_ALL)
    assert [row._replace(excerpt="") for row in plain] == [row._replace(excerpt="") for row in quoted]


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_give_rows_or_a_refusal_and_the_same_however_cut(data: bytes, piece: int) -> None:
    data = b"ICCID,x\n" + data
    results: list[object] = []
    for size in (piece, len(data)):
        try:
            results.append(read(data, piece=size))
        except FileRefusedError as error:
            results.append(str(error))
    assert results[0] == results[1]
