"""Card files for demonstrations: as operators really have them, and clean ones of any size.

Both are the same bytes every time, on every machine. Only ``Random.random`` is used, the one method
whose sequence Python guarantees to keep.
"""

import csv
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from junhong_cmp.embedded.demo_series import CardSeries, with_check_digit

DEFAULT_SERIES: Final = CardSeries()
GOOD_CARDS: Final = 3_000
_SEED: Final = 8_986
_CLEAN_HEADER: Final = ("ICCID", "接入号", "IMSI", "套餐", "批次")
_OPERATOR_HEADER: Final = (
    "序号",
    "卡号ICCID",
    "接入号码（11/13位）",
    "IMSI",
    "所属运营商",
    "套餐名称",
    "批次号",
    "备注",
)
_PREAMBLE: Final = (("君泓物联 · 中国移动卡台账（2026 年第一批，内部资料）",), ())
_PLANS: Final = ("10M/月", "30M/月", "100M/月", "1G/月", "流量池-共享")
_FULL_WIDTH: Final = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}
_DUPLICATES: Final = 12


@dataclass(frozen=True, slots=True)
class OperatorFile:
    """An operator's card file and what a correct import makes of it.

    ``cards`` rows become cards, ``duplicates`` name a card the file has had already, ``broken`` are refused.
    """

    content: bytes
    cards: int
    duplicates: int
    broken: int


def operator_file() -> OperatorFile:
    """Return ``examples/cards.csv``: GB18030, a title above the header, and every habit of spreadsheets."""
    rng = random.Random(_SEED)
    numbers = [_number(serial, rng) for serial in range(GOOD_CARDS)]
    rows = [_row(index, _disguise(number, index), rng) for index, number in enumerate(numbers)]
    faulty = [_row(index, cell, rng) for index, cell in enumerate(_broken_cells())]
    faulty += [_row(index, cell, rng) for index, cell in enumerate(_duplicate_cells(numbers, rng))]
    for row in faulty:  # below the first third: a duplicate has to come after its original
        rows.insert(GOOD_CARDS // 3 + int(rng.random() * (len(rows) - GOOD_CARDS // 3)), row)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows((*_PREAMBLE, _OPERATOR_HEADER))
    writer.writerows((str(line), *row) for line, row in enumerate(rows, start=1))
    return OperatorFile(
        content=text.getvalue().encode("gb18030"),
        cards=GOOD_CARDS,
        duplicates=_DUPLICATES,
        broken=len(faulty) - _DUPLICATES,
    )


def write_clean_cards(path: Path, count: int, series: CardSeries = DEFAULT_SERIES) -> None:
    """Write a faultless UTF-8 file of the first ``count`` cards of a series, in bounded memory."""
    rng = random.Random(_SEED)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_CLEAN_HEADER)
        for serial in range(count):
            numbers = series.iccid(serial), series.msisdn(serial), series.imsi(serial)
            writer.writerow((*numbers, _pick(_PLANS, rng), "DEMO-01"))


def _number(serial: int, rng: random.Random) -> str:
    """Return a canonical number: mostly 20 digits, some 19, some with letters, half without a right check."""
    body = f"89860425{serial * 7919 % 10**11:011d}"  # a prime step: neighbours in the file are no neighbours
    if serial % 97 == 0:
        return f"{body[:6]}B{body[7:]}{int(rng.random() * 10)}"
    if serial % 23 == 0:
        return body
    return with_check_digit(body) if rng.random() < 0.5 else f"{body}{int(rng.random() * 10)}"  # noqa: PLR2004 - half


def _disguise(number: str, index: int) -> str:
    """Write a number as spreadsheets and people do; the number itself is not touched."""
    padded = number if len(number) == 20 else f"{number}F"  # noqa: PLR2004 - the long form of an ICCID
    habits = {
        3: f'="{number}"',
        7: f"'{number}",
        11: number.translate(_FULL_WIDTH),
        13: f"{number}\u00a0",
        17: f"{number[:6]} {number[6:12]} {number[12:]}",
        19: f"\t{number}",
        29: f"\u200b{number}",
        31: number.lower(),
        37: padded,
    }
    return habits.get(index % 41, padded if index % 46 == 0 else number)


def _broken_cells() -> Iterator[str]:
    """Yield what no careful import accepts; the number meant is gone or was never there."""
    for tail in range(8):
        yield f"8.9860{tail}E+19"  # a spreadsheet took the number for a quantity
        yield f"8986042512345678{tail:02d}"  # 18 digits
        yield f"8986042512345678{tail:02d}123"  # 21 digits
        yield f"8986O4251234567{tail:02d}123"  # the letter O for a zero
    yield from ("8.986E19", "89860425123456780000.0", "", "   ", "待补", "#N/A", "合计", "-", "同上")


def _duplicate_cells(numbers: list[str], rng: random.Random) -> Iterator[str]:
    """Yield cards from the first third once more, some in the other of their two forms."""
    for index in range(_DUPLICATES):
        number = numbers[1 + int(rng.random() * (GOOD_CARDS // 3 - 2))]
        yield number[:19] if index % 3 == 0 else f"'{number}"


def _row(serial: int, cell: str, rng: random.Random) -> tuple[str, ...]:
    msisdn = _msisdn(serial)
    remark = _pick(("", "", "", "，已到货", "客户：测试（二期）", '标注"急"'), rng)
    imsi = _imsi(serial) if serial % 5 else ""
    shown = f'="{msisdn}"' if serial % 4 == 0 else msisdn
    return (
        cell,
        shown,
        imsi,
        _pick(("中国移动", "移动", "CMCC"), rng),
        _pick(_PLANS, rng),
        "2026-移动-001",
        remark,
    )


def _msisdn(serial: int) -> str:
    return f"10648{serial % 10**8:08d}"


def _imsi(serial: int) -> str:
    return f"46004{serial % 10**10:010d}"


def _pick(options: tuple[str, ...], rng: random.Random) -> str:
    return options[int(rng.random() * len(options))]
