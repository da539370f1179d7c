import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.imports.card_files import iccid
from tests.polling.samples import make_account

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.imports.header import Field
from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.rows import Candidate, check_row
from junhong_cmp.imports.sheet_row import CellKind, SheetRow

GOOD = iccid(1)
ACCOUNT = make_account(code="acc", name="一号通道")


def check(
    fields: dict[Field, str], *, carrier: Carrier = Carrier.CMCC, surplus: bool = False
) -> Candidate | RowResult:
    return check_row(SheetRow(7, 7, fields, surplus), replace(ACCOUNT, carrier=carrier))


def accepted(**cells: str) -> Candidate:
    outcome = check({Field.ICCID: GOOD} | {Field[name.upper()]: value for name, value in cells.items()})
    assert isinstance(outcome, Candidate)
    return outcome


@pytest.mark.parametrize(
    "raw",
    [
        GOOD,
        f" {GOOD}\t",
        f"'{GOOD}",
        f'="{GOOD}"',
        f"\u200b{GOOD}\u00a0",
        "".join(chr(ord(c) + 0xFEE0) for c in GOOD),
    ],
)
def test_one_card_however_it_is_written(raw: str) -> None:
    outcome = check({Field.ICCID: raw})
    assert isinstance(outcome, Candidate)
    assert (outcome.line_no, outcome.card.iccid, outcome.warnings) == (7, GOOD, ())


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "iccid_empty"),
        ("8.98605E+19", "iccid_scientific"),
        ("89860400000000000001.0", "iccid_decimal"),
        ("8986040000", "iccid_length"),
        (GOOD + "\0", "iccid_alphabet"),
        ("合计", "iccid_alphabet"),
        ("=cmd|' /C calc'!A0", "iccid_alphabet"),
        ("9" * 2000, "cell_too_long"),
    ],
)
def test_what_is_no_iccid_is_rejected_with_its_line(raw: str, code: str) -> None:
    outcome = check({Field.ICCID: raw})
    assert isinstance(outcome, RowResult)
    assert (outcome.line_no, outcome.status, outcome.reason_code) == (7, RowStatus.REJECTED, code)
    assert outcome.reason


def test_faulty_and_short_rows_are_rejected() -> None:
    faulty = check_row(SheetRow(3, 3, {}, fault="引号未闭合", excerpt='"开\x07'), ACCOUNT)
    assert isinstance(faulty, RowResult)
    assert (faulty.value, faulty.reason_code, faulty.reason) == (
        '"开\\u0007',
        "row_unreadable",
        "无法解析：引号未闭合",
    )
    short = check({Field.PLAN: "x"})
    assert isinstance(short, RowResult)
    assert short.reason_code == "iccid_missing"


def test_the_other_cells_are_taken_over() -> None:
    card = accepted(
        msisdn="+8614400000001", imsi="460001234567890", plan="  月包 30M\n", batch="B\x0012"
    ).card
    assert (card.msisdn, card.imsi, card.plan, card.batch_no) == (
        "8614400000001",
        "460001234567890",
        "月包 30M",
        "B 12",
    )
    marked = accepted(plan='="30"', batch=" '2026-01 ").card
    assert (marked.plan, marked.batch_no) == ("30", "2026-01")
    empty = accepted(msisdn=" ", imsi="", plan="\u3000", batch="").card
    assert (empty.msisdn, empty.imsi, empty.plan, empty.batch_no) == (None, None, None, None)


def test_a_bad_side_cell_is_dropped_with_a_warning_and_never_costs_the_card() -> None:
    outcome = accepted(msisdn="1.06E+12", imsi="abc", plan="x" * 300, batch="y" * 300)
    assert outcome.warnings == (
        "接入号无效，未采用",
        "IMSI无效，未采用",
        "套餐过长，未采用",
        "批次过长，未采用",
    )
    assert outcome.card.msisdn is None


@pytest.mark.parametrize("named", ["中国移动", "移动", "cmcc", "未知", ""])
def test_a_fitting_or_unknown_carrier_says_nothing(named: str) -> None:
    assert accepted(carrier=named).warnings == ()


def test_contradictions_with_the_account_are_warned_about() -> None:
    assert accepted(carrier="联通").warnings == ("运营商列为中国联通，与账户的中国移动不符",)
    assert accepted(account="二号通道").warnings == ("通道列与导入的账户不符",)
    assert accepted(account=" ACC ").warnings == ()
    assert accepted(account="一号通道").warnings == ()
    outcome = check({Field.ICCID: GOOD, Field.CARRIER: "联通"}, carrier=Carrier.CUCC, surplus=True)
    assert isinstance(outcome, Candidate)
    assert outcome.warnings == ("号段 898604 通常属于中国移动", "该行列数多于表头，可能有错位")


def judge_cell(raw: str, kind: CellKind) -> Candidate | RowResult:
    return check_row(SheetRow(7, 7, {Field.ICCID: raw}, kinds={Field.ICCID: kind}), ACCOUNT)


@pytest.mark.parametrize(
    ("raw", "kind", "code", "said"),
    [
        ("8.9860400000000004E+19", CellKind.NUMBER, "iccid_numeric_cell", "设为文本格式"),
        ("12345", CellKind.NUMBER, "iccid_numeric_cell", "设为文本格式"),
        (GOOD, CellKind.FORMULA, "cell_spoiled", "单元格是公式.*粘贴为值"),
        ("", CellKind.FORMULA, "cell_spoiled", "单元格是公式"),
        ("#N/A", CellKind.ERROR, "cell_spoiled", "单元格是错误值"),
        ("TRUE", CellKind.BOOLEAN, "cell_spoiled", "单元格是逻辑值"),
        ("2026-11-30", CellKind.DATE, "cell_spoiled", "单元格是日期"),
    ],
)
def test_an_iccid_that_is_no_text_is_rejected_with_the_remedy(
    raw: str, kind: CellKind, code: str, said: str
) -> None:
    outcome = judge_cell(raw, kind)
    assert isinstance(outcome, RowResult)
    assert (outcome.status, outcome.value, outcome.reason_code) == (RowStatus.REJECTED, raw, code)
    assert re.search(said, outcome.reason or "")


@pytest.mark.parametrize(
    ("field", "raw", "kind", "taken", "warned"),
    [
        (Field.MSISDN, "1.064000000001E12", CellKind.NUMBER, "1064000000001", ()),
        (Field.IMSI, "460001234567890", CellKind.NUMBER, "460001234567890", ()),
        (Field.IMSI, "4.6E15", CellKind.NUMBER, None, ("IMSI是超过 15 位的数值，已失真，未采用",)),
        (Field.MSISDN, "1064000000001", CellKind.FORMULA, None, ("接入号是公式，未采用",)),
        (Field.PLAN, "月包", CellKind.FORMULA, "月包", ()),
        (Field.PLAN, "29.899999999999999", CellKind.NUMBER, "29.9", ()),
        (Field.PLAN, "#REF!", CellKind.ERROR, None, ("套餐是错误值，未采用",)),
        (Field.BATCH, "TRUE", CellKind.BOOLEAN, "TRUE", ()),
    ],
)
def test_cells_beside_it_are_taken_as_far_as_they_are_exact(
    field: Field, raw: str, kind: CellKind, taken: str | None, warned: tuple[str, ...]
) -> None:
    outcome = check_row(SheetRow(7, 7, {Field.ICCID: GOOD, field: raw}, kinds={field: kind}), ACCOUNT)
    assert isinstance(outcome, Candidate)
    card = outcome.card
    names = {
        Field.MSISDN: card.msisdn,
        Field.IMSI: card.imsi,
        Field.PLAN: card.plan,
        Field.BATCH: card.batch_no,
    }
    assert (names[field], outcome.warnings) == (taken, warned)


@pytest.mark.parametrize("raw", ["ICCID", "卡号ICCID", "ICCID（20位）"])
def test_a_header_met_again_is_skipped(raw: str) -> None:
    outcome = check({Field.ICCID: raw})
    assert isinstance(outcome, RowResult)
    assert (outcome.status, outcome.reason_code) == (RowStatus.SKIPPED, "repeated_header")


@given(
    st.dictionaries(st.sampled_from(Field), st.text(max_size=40)),
    st.none() | st.dictionaries(st.sampled_from(Field), st.sampled_from(CellKind)),
)
def test_any_cells_give_an_outcome(fields: dict[Field, str], kinds: dict[Field, CellKind] | None) -> None:
    outcome = check_row(SheetRow(7, 7, fields, kinds=kinds), ACCOUNT)
    assert outcome.line_no == 7


DIGITS = st.text("0123456789", min_size=6, max_size=22)
DRESSES = st.sampled_from([" {}", "'{}", '="{}"', "\u200b{}", "{}\n"])


@given(
    st.tuples(DIGITS, DIGITS, DIGITS) | st.just((GOOD, "1064000000001", "460001234567890")),
    DRESSES,
    st.sampled_from(Carrier),
)
def test_a_clean_number_is_judged_as_one_that_has_to_be_cleaned(
    numbers: tuple[str, str, str], dress: str, carrier: Carrier
) -> None:
    columns = (Field.ICCID, Field.MSISDN, Field.IMSI)
    clean = dict(zip(columns, numbers, strict=True))
    dressed = {field: dress.format(number) for field, number in clean.items()}
    outcomes = [check(fields, carrier=carrier)._replace(value="") for fields in (clean, dressed)]
    assert outcomes[0] == outcomes[1]


@given(st.text(max_size=6) | st.text(" '=\"x1\t\u3000", max_size=6))
def test_a_text_met_again_is_taken_as_it_was_at_first(text: str) -> None:
    first, again = accepted(plan=text, batch=text), accepted(plan=text)
    assert first.card.plan == first.card.batch_no == again.card.plan
