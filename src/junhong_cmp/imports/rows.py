"""The rules of one row: which card it means, or why it can't be imported. Pure."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier
from junhong_cmp.cards.iccid import NUMERIC_CELL_TEXT, IccidError, IccidProblem, clean_cell, normalise
from junhong_cmp.cards.model import NewCard
from junhong_cmp.imports.cells import exact_number
from junhong_cmp.imports.defusing import unmarked
from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.header import Field, recognise_header
from junhong_cmp.imports.model import RowProblem, RowResult, RowStatus
from junhong_cmp.imports.sheet_row import CellKind, SheetRow

_TEXT_CHARS: Final = 200
_CELL_CHARS: Final = 1024
_TEXTS_REMEMBERED: Final = 1024
"""Of columns that say much the same in every row: plans, batches, carriers, accounts."""
_ICCID: Final = Field.ICCID
_NUMBERS: Final = (
    (Field.MSISDN, re.compile(r"[0-9]{8,15}")),
    (Field.IMSI, re.compile(r"[0-9]{14,15}")),
    (Field.IMEI, re.compile(r"[0-9]{14,16}")),
)
_TEXTS: Final = (Field.PLAN, Field.BATCH)
_CONTEXT: Final = frozenset({Field.CARRIER, Field.ACCOUNT})
_CARRIERS: Final[Mapping[str, Carrier]] = {
    name: carrier
    for carrier, names in {
        Carrier.CMCC: "中国移动 移动 CMCC CHINAMOBILE",
        Carrier.CUCC: "中国联通 联通 CUCC UNICOM CHINAUNICOM",
        Carrier.CTCC: "中国电信 电信 CTCC TELECOM CHINATELECOM",
        Carrier.CBN: "中国广电 广电 CBN",
    }.items()
    for name in names.split()
}


class RowAccount(Protocol):
    """What the rules need of the account that the cards are for."""

    @property
    def carrier(self) -> Carrier:
        """Whose cards they should be."""

    @property
    def code(self) -> str:
        """The account's code."""

    @property
    def name(self) -> str:
        """The account's name."""


class Candidate(NamedTuple):
    """A row that names a card properly; whether the card is new only the database knows."""

    line_no: int
    value: str
    card: NewCard
    warnings: tuple[str, ...]


def check_row(row: SheetRow, account: RowAccount) -> Candidate | RowResult:
    """Return the card that ``row`` names, or the row's rejection with its reason."""
    if row.fault is not None:
        return _reject(row, row.excerpt, RowProblem.UNREADABLE, f"无法解析：{row.fault}")
    raw = row.fields.get(_ICCID)
    if raw is None:
        return _reject(row, "", RowProblem.ICCID_MISSING, "缺少 ICCID 列：该行列数少于表头")
    if row.kinds and (kind := row.kinds.get(_ICCID)) is not None:
        return _refuse_kind(row, raw, kind)
    if len(raw) > _CELL_CHARS:
        return _reject(row, raw, RowProblem.CELL_TOO_LONG, f"ICCID 单元格过长：{len(raw)} 个字符")
    try:
        iccid = normalise(raw, carrier=account.carrier)
    except IccidError as error:
        return _explain(row, raw, error)
    warnings = list(iccid.warnings)
    if row.surplus_cells or not _CONTEXT.isdisjoint(row.fields):
        warnings += _context_warnings(row, account)
    msisdn, imsi, imei = [_number(row, field, form, warnings) for field, form in _NUMBERS]
    plan, batch_no = [_text(row, field, warnings) for field in _TEXTS]
    card = NewCard(iccid.value, msisdn, imsi, imei, batch_no, plan=plan)
    return Candidate(row.line, iccid.value, card, tuple(warnings))


def _reject(row: SheetRow, raw: str, code: str, reason: str) -> RowResult:
    return RowResult(
        line_no=row.line, status=RowStatus.REJECTED, value=show(raw), reason_code=code, reason=reason
    )


def _refuse_kind(row: SheetRow, raw: str, kind: CellKind) -> RowResult:
    """Refuse an ICCID that the workbook does not hold as text: its digits can't be trusted."""
    if kind is CellKind.NUMBER:
        return _reject(row, raw, IccidProblem.NUMERIC_CELL, NUMERIC_CELL_TEXT)
    remedy = "请把该列复制后“选择性粘贴为值”，并设为文本格式" if kind is CellKind.FORMULA else "请填写文本"
    return _reject(row, raw, RowProblem.CELL_SPOILED, f"ICCID 单元格是{kind}，不是文本；{remedy}")


def _explain(row: SheetRow, raw: str, error: IccidError) -> RowResult:
    if error.code is IccidProblem.ALPHABET and recognise_header([raw]) is not None:
        return RowResult(
            line_no=row.line,
            status=RowStatus.SKIPPED,
            value=show(raw),
            reason_code=RowProblem.REPEATED_HEADER,
            reason="重复的表头",
        )
    return _reject(row, raw, error.code, error.text)


def _number(row: SheetRow, field: Field, form: re.Pattern[str], warnings: list[str]) -> str | None:
    raw = row.fields.get(field, "")
    if row.kinds and (kind := row.kinds.get(field)) is not None:
        if kind is CellKind.FORMULA:
            warnings.append(f"{field}是公式，未采用")
            return None
        raw = _as_seen(field, raw, kind, warnings)
    if not raw or form.fullmatch(raw) is not None:  # nearly every cell there is
        return raw or None
    value = clean_cell(raw[:_CELL_CHARS]).removeprefix("+")
    if not value:
        return None
    if form.fullmatch(value) is None:
        warnings.append(f"{field}无效，未采用")
        return None
    return value


def _text(row: SheetRow, field: Field, warnings: list[str]) -> str | None:
    raw = row.fields.get(field, "")
    if row.kinds and (kind := row.kinds.get(field)) is not None:
        raw = _as_seen(field, raw, kind, warnings)
    if not raw:
        return None
    value = _clean_text(raw[:_CELL_CHARS])
    if len(value) > _TEXT_CHARS:
        warnings.append(f"{field}过长，未采用")
        return None
    return value or None


@lru_cache(_TEXTS_REMEMBERED)
def _clean_text(raw: str) -> str:
    """Return a text on one line, with single blanks and without what marks it as a text."""
    if not raw.isprintable():
        raw = "".join(char if char.isprintable() else " " for char in raw)
    return unmarked(" ".join(raw.split())).strip()


def _as_seen(field: Field, raw: str, kind: CellKind, warnings: list[str]) -> str:
    """Return a workbook's cell beside the ICCID as a person sees it; what is spoiled is left out."""
    if kind is CellKind.NUMBER:
        number = exact_number(raw)
        if number is None:
            warnings.append(f"{field}是超过 15 位的数值，已失真，未采用")
        return number or ""
    if kind is CellKind.ERROR:
        warnings.append(f"{field}是错误值，未采用")
        return ""
    return raw


def _context_warnings(row: SheetRow, account: RowAccount) -> list[str]:
    warnings: list[str] = []
    carrier = _CARRIERS.get(_plain(row.fields.get(Field.CARRIER, "")))
    if carrier is not None and account.carrier not in {carrier, Carrier.OTHER}:
        warnings.append(f"运营商列为{CARRIER_NAMES[carrier]}，与账户的{CARRIER_NAMES[account.carrier]}不符")
    named = _plain(row.fields.get(Field.ACCOUNT, ""))
    if named and named not in {_plain(account.code), _plain(account.name)}:
        warnings.append("通道列与导入的账户不符")
    if row.surplus_cells:
        warnings.append("该行列数多于表头，可能有错位")
    return warnings


def _plain(raw: str) -> str:
    return _plain_name(raw[:_CELL_CHARS]) if raw else ""


@lru_cache(_TEXTS_REMEMBERED)
def _plain_name(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).upper().split())
