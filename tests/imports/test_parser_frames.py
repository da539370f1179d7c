from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.model import NewCard
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.model import RowProblem, RowResult, RowStatus
from junhong_cmp.imports.parser_frames import (
    LENGTH,
    FrameKind,
    decode_frame,
    decode_rows,
    encode_frame,
    encode_rows,
)
from junhong_cmp.imports.rows import Candidate

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
LINES = st.integers(1, 1_048_576)
CARDS = st.builds(
    NewCard,
    iccid=TEXTS,
    msisdn=st.none() | TEXTS,
    imsi=st.none() | TEXTS,
    imei=st.none() | TEXTS,
    batch_no=st.none() | TEXTS,
    plan=st.none() | TEXTS,
    category=st.just(""),
    real_name_required=st.just(value=False),
)
CANDIDATES = st.builds(
    lambda line, card, warnings: Candidate(line, card.iccid, card, tuple(warnings)),
    LINES,
    CARDS,
    st.lists(TEXTS, max_size=3),
)
RESULTS = st.builds(
    RowResult,
    line_no=LINES,
    status=st.sampled_from(RowStatus),
    value=TEXTS,
    reason_code=st.sampled_from([code.value for code in RowProblem]),
    reason=TEXTS,
    card_id=st.none(),
    warnings=st.just(()),
)


@given(st.lists(st.builds(Judged, LINES, CANDIDATES | RESULTS), max_size=5))
def test_rows_come_over_the_pipe_as_they_were(rows: list[Judged]) -> None:
    frame = encode_rows(rows)
    (length,) = LENGTH.unpack(frame[: LENGTH.size])
    assert length == len(frame) - LENGTH.size
    kind, content = decode_frame(frame[LENGTH.size :])
    assert kind is FrameKind.ROWS
    assert decode_rows(content) == rows


def test_a_frame_without_content() -> None:
    assert decode_frame(encode_frame(FrameKind.END)[LENGTH.size :]) == (FrameKind.END, None)
