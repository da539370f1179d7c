from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.header import Field
from junhong_cmp.imports.sheet_row import CellKind, SheetRow
from junhong_cmp.imports.workbook_frames import (
    LENGTH,
    FrameKind,
    decode_frame,
    decode_rows,
    encode_frame,
    encode_rows,
)

FIELDS = st.dictionaries(st.sampled_from(Field), st.text(st.characters(codec="utf-8"), max_size=20))
KINDS = st.none() | st.dictionaries(st.sampled_from(Field), st.sampled_from(CellKind), min_size=1)
ROWS = st.builds(
    lambda line, fields, surplus, fault, kinds: SheetRow(line, line, fields, surplus, fault, "卡", kinds),
    st.integers(1, 1_048_576),
    FIELDS,
    st.booleans(),
    st.none() | st.just("列数过多"),
    KINDS,
)


@given(st.lists(ROWS, max_size=5))
def test_rows_come_over_the_pipe_as_they_were(rows: list[SheetRow]) -> None:
    frame = encode_rows(rows)
    (length,) = LENGTH.unpack(frame[: LENGTH.size])
    assert length == len(frame) - LENGTH.size
    kind, content = decode_frame(frame[LENGTH.size :])
    assert kind is FrameKind.ROWS
    plain = [
        row if row.kinds or row.fault or row.surplus_cells else SheetRow(row.line, row.line, row.fields)
        for row in rows
    ]
    assert decode_rows(content) == plain


def test_a_frame_without_content() -> None:
    assert decode_frame(encode_frame(FrameKind.END)[LENGTH.size :]) == (FrameKind.END, None)
