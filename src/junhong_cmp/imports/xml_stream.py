"""XML parts of workbooks as a stream of elements, without a tree and without entities."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from xml.parsers import expat

from junhong_cmp.imports.errors import FileRefusedError

_TEXT_BUFFER: Final = 64 * 1024
_MOST_TEXTS: Final = 16
_FIRST_BYTES: Final = 4
"""A byte order mark and a character, or two characters: one byte of them is zero if the part is in UTF-16."""
_XML_FAULTS: Final = {expat.ExpatError, UnicodeDecodeError, ValueError, LookupError}
"""The last two exactly, and none of their kinds: what the parser says to an encoding it can't read."""


class XmlStream:
    """An XML stream calls back at the start and the end of each element, by its name without prefix.

    ``texts`` gathers character data for the callbacks, who clear it; ``parsed`` counts the bytes of the
    pieces that are done with. A document type is refused: entities need one, and workbooks have none.
    """

    def __init__(
        self, on_start: Callable[[str, dict[str, str]], None], on_end: Callable[[str], None], *, max_text: int
    ) -> None:
        self.texts: list[str] = []
        self.parsed = 0
        self._encoding: str | None = None
        self._wide = False
        self._last = b""
        self._max_text = max_text
        self._on_start, self._on_end = on_start, on_end
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _TEXT_BUFFER
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = on_end
        self._parser.CharacterDataHandler = self.texts.append
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        self._parser.XmlDeclHandler = self._declare

    @property
    def in_utf8(self) -> bool:
        """Whether the part's bytes are UTF-8, by their beginning and as its first line says."""
        return not self._wide and self._encoding in {None, "utf-8"}

    def is_behind(self, tag: bytes, position: int) -> bool:
        """Whether the part was parsed up to the end ``tag`` that was called back for at ``position``.

        An empty element is called back for where its only tag ends, and no ``tag`` need follow there.
        """
        return position + len(tag) == self.parsed and self._last.endswith(tag)

    @property
    def position(self) -> int:
        """Where in the part the tag starts that is called back for."""
        return self._parser.CurrentByteIndex

    def run(self, pieces: Iterable[bytes], takes: Callable[[bytes], bool] | None = None) -> Iterator[None]:
        """Parse piece by piece, pausing after each; for the pieces that ``takes`` took, call back for none.

        Raises:
            FileRefusedError: the part is not well-formed, or has a document type.

        """
        try:
            for piece in pieces:
                if not self.parsed:
                    self._wide = b"\0" in piece[:_FIRST_BYTES]
                if takes is not None and takes(piece):
                    self._check(piece)
                else:
                    self._parser.Parse(piece)
                    self._trim()
                self.parsed += len(piece)
                self._last = piece
                yield
            self._parser.Parse(b"", True)  # noqa: FBT003 - expat's own signature
        except (expat.ExpatError, ValueError, LookupError) as error:
            if type(error) not in _XML_FAULTS:  # a fault of a callback
                raise
            raise FileRefusedError("工作簿已损坏：XML 内容不完整或不合规，请重新导出") from error
        yield

    def _check(self, piece: bytes) -> None:
        """Parse a piece of whole elements for its faults alone."""
        parser = self._parser
        on_start, on_end = parser.StartElementHandler, parser.EndElementHandler
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
        parser.Parse(piece)
        parser.StartElementHandler, parser.EndElementHandler = on_start, on_end
        parser.CharacterDataHandler = self.texts.append

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self._encoding = encoding and encoding.lower()

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Start the root element: if it has a prefix, all have, and each name is cut."""
        if ":" in tag:
            self._parser.StartElementHandler = self._start_prefixed
            self._parser.EndElementHandler = self._end_prefixed
        else:
            self._parser.StartElementHandler = self._on_start
        self._on_start(tag.rpartition(":")[2], attributes)

    def _start_prefixed(self, tag: str, attributes: dict[str, str]) -> None:
        self._on_start(tag.rpartition(":")[2], attributes)

    def _end_prefixed(self, tag: str) -> None:
        self._on_end(tag.rpartition(":")[2])

    def _trim(self) -> None:
        """Keep of a text without end no more than may matter."""
        if len(self.texts) > _MOST_TEXTS:
            self.texts[:] = ["".join(self.texts)[: self._max_text + 1]]


def _refuse_doctype(*_: object) -> None:
    raise FileRefusedError("工作簿含有 DOCTYPE 或实体定义，可能是恶意文件，已拒绝")
