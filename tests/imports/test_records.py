import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.lines import Line
from junhong_cmp.imports.records import Record, RecordAssembler, RecordFault

LIMITS = ImportLimits(line_chars=200, record_lines=5, columns=6)


def assemble(text: str, *, delimiter: str = ",", iccid_column: int | None = 0) -> list[Record]:
    assembler = RecordAssembler(delimiter, LIMITS)
    assembler.iccid_column = iccid_column
    lines = [Line(number, part) for number, part in enumerate(text.split("\n"), 1)]
    return [record for line in lines for record in assembler.push(line)] + assembler.finish()


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a,b", ["a", "b"]),
        ('"a,1",b', ["a,1", "b"]),
        ('"a""1",b', ['a"1', "b"]),
        ('="8986",b', ['="8986"', "b"]),
        ('5" 管,b', ['5" 管', "b"]),
        ('"",b', ["", "b"]),
        ('"a"x"y,b', ['ax"y', "b"]),
        ('x,"a\nb"', ["x", "a\nb"]),
        ('x,"a\n\n""b"', ["x", 'a\n\n"b']),
        ("", [""]),
    ],
)
def test_quotes_and_breaks(text: str, cells: list[str]) -> None:
    assert assemble(text) == [Record(1, text.count("\n") + 1, cells)]


def test_line_numbers_after_a_quoted_break_are_exact() -> None:
    records = assemble('1,"x\ny"\n2,z')
    assert [(record.line, record.last_line) for record in records] == [(1, 2), (3, 3)]


def test_an_unclosed_quote_spoils_only_its_own_line() -> None:
    good = [f"8986040000000000000{n},x" for n in range(8)]
    records = assemble("\n".join([good[0], '89860400000000000009,"坏', *good[1:]]))
    faults = [record for record in records if record.fault is not None]
    assert [(record.line, record.fault) for record in faults] == [(2, RecordFault.QUOTE_NOT_CLOSED)]
    assert [record.cells[0] for record in records if record.fault is None] == [line[:20] for line in good]


def test_two_lines_with_a_stray_quote_do_not_close_each_other() -> None:
    records = assemble('89860400000000000001,"a\n89860400000000000002,"b"\n89860400000000000003,c')
    assert [record.fault for record in records] == [RecordFault.QUOTE_NOT_CLOSED, None, None]


def test_an_open_quote_is_given_up_at_the_caps_and_at_the_end() -> None:
    by_lines = assemble('"a\n' + "\n".join("bcdefgh"), iccid_column=None)
    assert by_lines[0].fault is RecordFault.QUOTE_NOT_CLOSED
    assert [record.cells for record in by_lines[1:]] == [[letter] for letter in "bcdefgh"]
    by_size = assemble('"' + "a" * 150 + "\n" + "b" * 150 + "\nc", iccid_column=None)
    assert [record.line for record in by_size] == [1, 2, 3]
    at_end = assemble('"a\n"b\n"c', iccid_column=None)
    assert [record.line for record in at_end] == [1, 3]
    assert at_end[0].cells == ["a\nb"]


def test_an_overlong_line_ends_an_open_quote() -> None:
    assembler = RecordAssembler(",", LIMITS)
    assert assembler.push(Line(1, '"a')) == []
    records = assembler.push(Line(2, "x" * 200, overlong=True))
    assert [record.fault for record in records] == [RecordFault.QUOTE_NOT_CLOSED, RecordFault.LINE_TOO_LONG]


def test_too_many_columns_is_a_fault_and_never_cut() -> None:
    (record,) = assemble("a,b,c,d,e,f,g")
    assert record.fault is RecordFault.TOO_MANY_COLUMNS
    assert assemble("a,b,c,d,e,f")[0].fault is None


@given(st.lists(st.text(alphabet='ab",;\n 89', max_size=12), max_size=8))
def test_every_line_is_in_exactly_one_record(parts: list[str]) -> None:
    text = "\n".join(parts)
    covered = [number for record in assemble(text) for number in range(record.line, record.last_line + 1)]
    assert covered == list(range(1, text.count("\n") + 2))


@given(
    st.lists(st.text(alphabet='ab"|;\x0b 89', max_size=12), max_size=8),
    st.sampled_from([",", ";", "|", "\t"]),
    st.integers(1, 12),
)
def test_a_plain_line_is_cut_just_as_any_other(texts: list[str], delimiter: str, columns: int) -> None:
    limits = ImportLimits(line_chars=200, record_lines=3, columns=columns)
    quick, thorough = RecordAssembler(delimiter, limits), RecordAssembler(delimiter, limits)
    for number, text in enumerate(texts, 1):
        line = Line(number, text, overlong="89" in text)
        cells, records = quick.cut_plain(line), thorough.push(line)
        if cells is None:
            assert quick.push(line) == records
        else:
            assert records == [Record(number, number, cells)]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a,b", True),
        ("", True),
        ('"a","b,c",d', True),
        ('"=""8986""",""', True),
        ('5" 管,b', False),
        ('"a"b,c', False),
        ('"a"",b', False),
        ("a,b,c,d,e,f,g", False),
    ],
)
def test_which_lines_are_plain(text: str, *, plain: bool) -> None:
    assert (RecordAssembler(",", LIMITS).cut_plain(Line(1, text)) is not None) is plain


def test_nothing_is_plain_while_a_quote_is_open() -> None:
    assembler = RecordAssembler(",", LIMITS)
    assert assembler.cut_plain(Line(1, "a,b")) == ["a", "b"]
    assembler.push(Line(2, 'a,"b'))
    assert assembler.cut_plain(Line(3, "a,b")) is None
