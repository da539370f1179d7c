"""Dates in XLSX workbooks: plain numbers of days, which only the format of the cell shows as dates."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from junhong_cmp.imports.xml_stream import XmlStream

_DAY: Final = "%Y-%m-%d"
_MONTH: Final = "%Y-%m"
_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - a date of a sheet has no zone
_EPOCH_1904: Final = datetime(1904, 1, 1)  # noqa: DTZ001 - as above
_LAST_DAY: Final = 2_958_466  # the year 9999 ends here
_MOST_STYLES: Final = 65_536
# Formats without a code of their own in the file, those of a Chinese office program included.
_BUILT_IN: Final = {
    **dict.fromkeys(("14", "15", "16", "22", *map(str, range(28, 32)), "51", "53", "54", "58"), _DAY),
    **dict.fromkeys(("17", "27", "36", "50", "52", "57"), _MONTH),
}
_LITERAL: Final = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')


class DateCells:
    """The date cells of a workbook are told from numbers by the styles that show dates."""

    def __init__(self, patterns: dict[str, str], *, since_1904: bool = False) -> None:
        self._patterns = patterns
        self._epoch = _EPOCH_1904 if since_1904 else _EPOCH

    def text_of(self, style: str | None, number: str) -> str | None:
        """Return the date that a cell shows, as ``2026-01-31`` or ``2026-01``; None if it is no date."""
        pattern = None if style is None else self._patterns.get(style)
        if pattern is None:
            return None
        try:
            days = float(number)
            if not 1 <= days < _LAST_DAY:
                return None
            moment = self._epoch + timedelta(seconds=round(days * 86_400))
        except (ValueError, OverflowError):
            return None
        timed = pattern == _DAY and (moment.hour or moment.minute or moment.second)
        return f"{moment:%Y-%m-%d %H:%M:%S}" if timed else f"{moment:{pattern}}"


def read_date_styles(pieces: Iterable[bytes]) -> dict[str, str]:
    """Return how dates are shown by the cell styles that show any; raises FileRefusedError as the parser."""
    parser = _StyleParser()
    for _ in parser.stream.run(pieces):
        pass
    return parser.patterns


class _StyleParser:
    """A style parser numbers the cell styles as they come and keeps those with a format of dates."""

    def __init__(self) -> None:
        self.patterns: dict[str, str] = {}
        self.stream = XmlStream(self._start, self._end, max_text=0)
        self._formats: dict[str, str | None] = {}
        self._inside = False
        self._number = 0

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "numFmt" and len(self._formats) < _MOST_STYLES:
            self._formats[attributes.get("numFmtId", "")] = _pattern_of(attributes.get("formatCode", ""))
        elif tag == "cellXfs":
            self._inside = True
        elif tag == "xf" and self._inside:
            shown_by = attributes.get("numFmtId", "")
            pattern = self._formats.get(shown_by, _BUILT_IN.get(shown_by))
            if pattern is not None and self._number < _MOST_STYLES:
                self.patterns[str(self._number)] = pattern
            self._number += 1

    def _end(self, tag: str) -> None:
        if tag == "cellXfs":
            self._inside = False


def _pattern_of(code: str) -> str | None:
    """Return how a format shows a date: to the day, to the month, or not at all (times of day, durations)."""
    letters = _LITERAL.sub("", code[:256]).lower().partition(";")[0]
    if "d" in letters:
        return _DAY
    return _MONTH if "y" in letters and "m" in letters else None
