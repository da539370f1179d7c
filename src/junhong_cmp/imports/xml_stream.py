"""XML parts of workbooks as a stream of elements, without a tree and without entities."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from xml.parsers import expat

from junhong_cmp.imports.errors import FileRefusedError

_TEXT_BUFFER: Final = 64 * 1024
_MOST_TEXTS: Final = 16
_XML_FAULTS: Final = {expat.ExpatError, UnicodeDecodeError, ValueError, LookupError}
"""The last two exactly, and none of their kinds: what the parser says to an encoding it can't read."""


class XmlStream:
    """An XML stream calls back at the start and the end of each element, by its name without prefix.

    ``texts`` gathers character data for the callbacks, who clear it. A document type is refused: entities
    need one, and workbooks have none.
    """

    def __init__(
        self, on_start: Callable[[str, dict[str, str]], None], on_end: Callable[[str], None], *, max_text: int
    ) -> None:
        self.texts: list[str] = []
        self._max_text = max_text
        self._on_start, self._on_end = on_start, on_end
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _TEXT_BUFFER
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = on_end
        self._parser.CharacterDataHandler = self.texts.append
        self._parser.StartDoctypeDeclHandler = _refuse_doctype

    def run(self, pieces: Iterable[bytes]) -> Iterator[None]:
        """Parse piece by piece, pausing after each.

        Raises:
            FileRefusedError: the part is not well-formed, or has a document type.

        """
        try:
            for piece in pieces:
                self._parser.Parse(piece)
                self._trim()
                yield
            self._parser.Parse(b"", True)  # noqa: FBT003 - expat's own signature
        except (expat.ExpatError, ValueError, LookupError) as error:
            if type(error) not in _XML_FAULTS:  # a fault of a callback
                raise
            raise FileRefusedError("工作簿已损坏：XML 内容不完整或不合规，请重新导出") from error
        yield

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
