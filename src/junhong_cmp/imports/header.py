"""Which column holds what: header synonyms, and the search for the header row."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError


class Field(StrEnum):
    """What a column may hold; the value is the name shown to people."""

    ICCID = "ICCID"
    MSISDN = "接入号"
    IMSI = "IMSI"
    CARRIER = "运营商"
    ACCOUNT = "通道"
    PLAN = "套餐"
    BATCH = "批次"


_SYNONYMS: Final[Mapping[Field, str]] = {
    Field.ICCID: "ICCID 卡号ICCID ICCID卡号 ICCID号 ICCID号码 ICCID码 集成电路卡号 集成电路卡识别码",
    Field.MSISDN: "接入号 接入号码 MSISDN 卡号 手机号 手机号码 物联网卡号 物联卡号 电话号码 号码",
    Field.IMSI: "IMSI IMSI号 IMSI码 IMSI号码 国际移动用户识别码",
    Field.CARRIER: "运营商 运营商名称 所属运营商 CARRIER OPERATOR",
    Field.ACCOUNT: "通道 通道名称 通道编码 账号 账户 帐号 ACCOUNT",
    Field.PLAN: "套餐 套餐名称 资费套餐 套餐类型 PLAN",
    Field.BATCH: "批次 批次号 批号 BATCH BATCHNO",
}
_FIELD_BY_NAME: Final = {name: field for field, names in _SYNONYMS.items() for name in names.split()}
_REMARK: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|【[^【】]*】")
_IGNORED: Final = re.compile(r"[\s\u00a0\u200b-\u200d\u2060\ufeff*:_'\"=-]+")


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the known fields of a file are: index by field, and the number of columns of the header."""

    index: Mapping[Field, int]
    width: int


def recognise_header(cells: Sequence[str]) -> Columns | None:
    """Return the columns if ``cells`` is a header row, that is, names an ICCID column; else None.

    The first column of a kind counts.

    Raises:
        FileRefusedError: two columns claim to be the ICCID.

    """
    index: dict[Field, int] = {}
    for position, cell in enumerate(cells):
        field = _field_of(cell)
        if field is Field.ICCID and field in index:
            raise FileRefusedError(f"表头有多个 ICCID 列：第 {index[field] + 1} 列与第 {position + 1} 列")
        if field is not None:
            index.setdefault(field, position)
    return Columns(index, len(cells)) if Field.ICCID in index else None


def _field_of(cell: str) -> Field | None:
    name = unicodedata.normalize("NFKC", cell[:64]).upper()
    return _FIELD_BY_NAME.get(_IGNORED.sub("", _REMARK.sub("", name)))
