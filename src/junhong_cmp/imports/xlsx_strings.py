"""The shared strings of an XLSX workbook."""

from collections.abc import Iterable

from junhong_cmp.imports.cells import unescape
from junhong_cmp.imports.xlsx_plain import STRING_END, cut_behind, find_plain_strings
from junhong_cmp.imports.xml_stream import XmlStream


def read_strings(pieces: Iterable[bytes], *, cell_chars: int) -> list[str]:
    """Return the strings by index, each cut right behind the longest that may count.

    Raises:
        FileRefusedError: the part is damaged.

    """
    parser = _StringsParser(cell_chars)
    for _ in parser.stream.run(cut_behind(STRING_END, pieces), parser.take_plain):
        pass
    return parser.strings


class _StringsParser:
    """A strings parser joins the runs of each string and leaves phonetic guides out."""

    def __init__(self, cell_chars: int) -> None:
        self.strings: list[str] = []
        self.stream = XmlStream(self._start, self._end, max_text=cell_chars)
        self._cut = cell_chars + 1
        self._runs: list[str] = []
        self._phonetic = False
        self._string_end = -1

    def take_plain(self, bite: bytes) -> bool:
        """Take the strings of ``bite`` if there is nothing else in it, and it starts right behind one."""
        stream = self.stream
        if self._phonetic or not (stream.in_utf8 and stream.is_behind(STRING_END, self._string_end)):
            return False  # the bite may even be the middle of a comment
        texts = find_plain_strings(bite)
        if texts is None:
            return False
        self.strings += [unescape(text[: self._cut]) for text in texts]
        self._runs[:] = texts[-1:]
        self._string_end = stream.parsed + len(bite) - len(STRING_END)
        return True

    def _start(self, tag: str, _attributes: dict[str, str]) -> None:
        if tag == "t":
            self.stream.texts.clear()
        elif tag == "si":
            self._runs.clear()
        elif tag == "rPh":
            self._phonetic = True

    def _end(self, tag: str) -> None:
        if tag == "t":
            if not self._phonetic and len(self._runs) < self._cut:
                self._runs.append("".join(self.stream.texts)[: self._cut])
        elif tag == "si":
            self.strings.append(unescape("".join(self._runs)[: self._cut]))
            self._string_end = self.stream.position
        elif tag == "rPh":
            self._phonetic = False
