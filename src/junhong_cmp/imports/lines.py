"""Bytes to numbered lines, in memory bounded by one line."""

import codecs
import io
from typing import NamedTuple

from junhong_cmp.imports.errors import FileRefusedError


class Line(NamedTuple):
    """One physical line without its line end; ``text`` is its beginning only when ``overlong``."""

    number: int
    text: str
    overlong: bool = False


class LineSplitter:
    r"""A line splitter decodes bytes and cuts them at ``\n``, ``\r\n`` and ``\r``.

    Unlike ``str.splitlines`` it cuts nowhere else, so its numbers are those an editor shows.
    A line longer than the cap is dropped while it streams by and given out as overlong.
    """

    def __init__(self, encoding: str, *, max_chars: int) -> None:
        decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._max_chars = max_chars
        self._held: list[str] = []
        self._held_chars = 0
        self._number = 1

    def feed(self, data: bytes, *, final: bool = False) -> list[Line]:
        """Return the lines that ended within ``data``; with ``final``, the last unended one too.

        Raises:
            FileRefusedError: bytes that are invalid in the encoding.

        """
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            raise FileRefusedError("文件内容与其编码不符，可能在读取过程中被更改") from error
        *ended, rest = text.split("\n")
        if ended and self._held:
            ended[0] = self._release(ended[0])
        self._hold(rest)
        if final and self._held:
            ended.append(self._release(""))
        most, first = self._max_chars, self._number
        self._number += len(ended)
        return [
            Line(number, part) if len(part) <= most else Line(number, part[:most], overlong=True)
            for number, part in enumerate(ended, first)
        ]

    def _hold(self, part: str) -> None:
        room = self._max_chars + 1 - self._held_chars
        if part and room > 0:
            self._held.append(part[:room])
            self._held_chars += min(len(part), room)

    def _release(self, end: str) -> str:
        """Return the line that was held, with its ``end``."""
        self._hold(end)
        line = "".join(self._held)
        self._held.clear()
        self._held_chars = 0
        return line
