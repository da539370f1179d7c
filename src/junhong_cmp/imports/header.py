"""Which column holds what: header synonyms, and the search for the header row."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.excerpt import show, without_numbers


class Field(StrEnum):
    """What a column may hold; the value is the name shown to people."""

    ICCID = "ICCID"
    MSISDN = "接入号"
    IMSI = "IMSI"
    IMEI = "IMEI"
    CARRIER = "运营商"
    ACCOUNT = "通道"
    PLAN = "套餐"
    BATCH = "批次"


_SYNONYMS: Final[Mapping[Field, str]] = {
    Field.ICCID: """ICCID 卡号ICCID ICCID卡号 ICCID号 ICCID号码 ICCID码 ICCID编号 ICCIDNO ICCIDNUMBER
        集成电路卡号 集成电路卡识别码 SIM卡ICCID SIMICCID 物联网卡ICCID 物联卡ICCID 卡片ICCID 卡ICCID
        SIM卡串号 SIM序列号 SIM卡序列号""",
    Field.MSISDN: """接入号 接入号码 接入码 MSISDN MSISDN号 MSISDN号码 卡号 手机号 手机号码 物联网卡号
        物联网卡号码 物联卡号 物联网号码 电话号码 号码 业务号码 用户号码 服务号码 设备号码""",
    Field.IMSI: "IMSI IMSI号 IMSI码 IMSI号码 国际移动用户识别码",
    Field.IMEI: "IMEI IMEI号 IMEI码 IMEI号码 设备IMEI 终端IMEI 国际移动设备识别码",
    Field.CARRIER: "运营商 运营商名称 所属运营商 CARRIER OPERATOR",
    Field.ACCOUNT: "通道 通道名称 通道编码 账号 账户 帐号 账户名称 ACCOUNT",
    Field.PLAN: "套餐 套餐名称 套餐名 资费套餐 套餐类型 资费 资费名称 资费计划 流量套餐 PLAN RATEPLAN",
    Field.BATCH: "批次 批次号 批号 批次编号 批次名称 采购批次 BATCH BATCHNO",
}
_FIELD_BY_NAME: Final = {name: field for field, names in _SYNONYMS.items() for name in names.split()}
_REMARK: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|【[^【】]*】|<[^<>]*>")
_IGNORED: Final = re.compile(r"[\s\u00a0\u200b-\u200d\u2060\ufeff*:_'\"=.#-]+")
_NAME_CHARS: Final = 64
_NAMES_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the known fields of a file are: index by field, and the number of columns of the header.

    ``ignored`` are the names of the other columns, as they may be shown.
    """

    index: Mapping[Field, int]
    width: int
    ignored: tuple[str, ...] = ()


class HeaderSearch:
    """A header search looks at row after row for the one that names an ICCID column.

    It remembers the row that came closest, so that a refusal can say what was there instead.
    """

    def __init__(self) -> None:
        self._closest: tuple[tuple[int, int], int, list[str]] | None = None
        self._fault = ""

    def try_row(self, line: int, cells: Sequence[str]) -> Columns | None:
        """Return the columns if ``cells`` is a header row; raises as :func:`recognise_header`."""
        columns = recognise_header(cells)
        if columns is None and (names := [show(cell) for cell in cells if cell.strip()]):
            known = sum(_field_of(name) is not None for name in names)
            if self._closest is None or self._closest[0] < (known, len(names)):
                self._closest = ((known, len(names)), line, names)
        return columns

    def note_fault(self, line: int, fault: str) -> None:
        """Remember the first row that could not be cut into cells: the header may be in it."""
        self._fault = self._fault or f"；第 {line} 行{fault}，无法作为表头识别"

    def refusal(self, where: str = "") -> FileRefusedError:
        """Return the error for a file, or a part of it named by ``where``, without a header row."""
        text = f"{where}找不到 ICCID 列：表头应包含 ICCID、卡号ICCID 或 集成电路卡号{self._fault}"
        if self._closest is None:
            return FileRefusedError(text if self._fault else f"{text}；没有可读的内容")
        _, line, names = self._closest
        return FileRefusedError(f"{text}；最像表头的是第 {line} 行：{list_names(names)}")


def recognise_header(cells: Sequence[str]) -> Columns | None:
    """Return the columns if ``cells`` is a header row, that is, names an ICCID column; else None.

    The first column of a kind counts.

    Raises:
        FileRefusedError: two columns claim to be the ICCID.

    """
    index: dict[Field, int] = {}
    ignored: list[str] = []
    for position, cell in enumerate(cells):
        field = _field_of(cell)
        if field is Field.ICCID and field in index:
            raise FileRefusedError(f"表头有多个 ICCID 列：第 {index[field] + 1} 列与第 {position + 1} 列")
        if field is not None and field not in index:
            index[field] = position
        elif cell.strip():
            ignored.append(show(cell))
    return Columns(index, len(cells), tuple(ignored)) if Field.ICCID in index else None


def list_names(names: Sequence[str]) -> str:
    """Return the names of columns or sheets in one short line."""
    more = f" 等 {len(names)} 个" if len(names) > _NAMES_SHOWN else ""
    return without_numbers("、".join(names[:_NAMES_SHOWN])) + more


def _field_of(cell: str) -> Field | None:
    name = _REMARK.sub("", unicodedata.normalize("NFKC", cell[:_NAME_CHARS]).upper())
    whole = _FIELD_BY_NAME.get(_IGNORED.sub("", name))
    if whole is not None or "/" not in name:
        return whole
    parts = [_FIELD_BY_NAME.get(_IGNORED.sub("", part)) for part in name.split("/")]
    return Field.ICCID if Field.ICCID in parts else next((part for part in parts if part is not None), None)
