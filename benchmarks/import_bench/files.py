"""Card files of any size: as CSV, as a workbook, and as bytes that are never stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from xlsxwriter import Workbook

TITLES: Final = ("ICCID", "接入号", "IMSI", "套餐", "批次")
_LINES_A_PIECE: Final = 64
_LINE_BYTES: Final = 1200  # 2 GB of them are fewer than the rows an import may have
_UNUSED: Final = 10_000_000_000  # behind every number of the other files


def iccid(serial: int) -> str:
    """Return a valid number of China Mobile with its check digit."""
    body = f"8986040{serial:012d}"
    doubled, plain = map(int, body[-1::-2]), map(int, body[-2::-2])
    total = sum(sum(divmod(2 * digit, 10)) for digit in doubled) + sum(plain)
    return f"{body}{-total % 10}"


def row(serial: int) -> tuple[str, ...]:
    """Return the cells of one card."""
    return iccid(serial), f"1064{serial:09d}", f"46004{serial:010d}", "30M/月", "2026-01"


def write_csv(path: Path, first: int, rows: int) -> None:
    """Write ``rows`` cards as UTF-8 with byte order mark."""
    with path.open("w", encoding="utf-8-sig", newline="") as out:
        out.write(",".join(TITLES) + "\r\n")
        out.writelines(",".join(row(serial)) + "\r\n" for serial in range(first, first + rows))


def write_xlsx(path: Path, first: int, rows: int) -> None:
    """Write ``rows`` cards as a workbook, every cell a text."""
    book = Workbook(str(path), {"constant_memory": True})
    sheet = book.add_worksheet()
    for line, cells in enumerate((TITLES, *map(row, range(first, first + rows)))):
        for column, cell in enumerate(cells):
            sheet.write_string(line, column, cell)
    book.close()


def generated_csv(size: int) -> Iterator[bytes]:
    """Yield about ``size`` bytes of CSV in lines of 1 200 bytes, mostly rows that are refused.

    Of a hundred rows one is a new card and one names a card the file has had; the others are too short
    for an ICCID. So the time goes into reading, judging and keeping outcomes, and ends.
    """
    yield (",".join((*TITLES, "备注")) + "\n").encode()
    filler = "x" * (_LINE_BYTES - 60)
    serial, sent = _UNUSED, 0
    while sent < size:
        lines = []
        for _ in range(_LINES_A_PIECE):
            serial += 1
            number = {0: iccid(serial), 1: iccid(serial - 1)}.get(serial % 100, f"8986{serial:010d}")
            lines.append(f"{number},,,,,{filler}\n")
        piece = "".join(lines).encode()
        sent += len(piece)
        yield piece
