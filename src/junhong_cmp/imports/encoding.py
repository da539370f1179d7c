"""Which encoding a file is in, decided over all of its bytes without holding them.

The order is fixed: byte order mark, strict UTF-8, GB18030, else the file is refused. There is no
guessing by frequency: a detector is wrong on short files of digits with three Chinese headers.
"""

import codecs
import hashlib
from dataclasses import dataclass
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES: Final = (
    (b"PK\x03\x04", "暂不支持 Excel（.xlsx）与压缩文件，请另存为 CSV 后再导入"),
    (b"PK\x05\x06", "暂不支持压缩文件，请解压出 CSV 后再导入"),
    (b"\xd0\xcf\x11\xe0", "暂不支持 Excel（.xls）文件，请另存为 CSV 后再导入"),
    (b"\x1f\x8b", "暂不支持压缩文件，请解压出 CSV 后再导入"),
    (b"%PDF", "这是 PDF 文件，请提供 CSV 文件"),
)
_LONGEST_START: Final = max(len(start) for start, _ in (*_MARKS, *_SIGNATURES))


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one pass over a file tells: its encoding, SHA-256 (hex), size, and number of line ends."""

    encoding: str
    sha256: str
    size: int
    lines: int


class _Candidate:
    """A candidate is an encoding the bytes seen so far are valid in."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._wide = encoding == "utf-16"
        self.line_ends = 0
        self.returns = 0

    def accept(self, data: bytes, *, final: bool = False) -> bool:
        """Return whether the bytes are still valid with ``data`` added."""
        if not self._wide and data.isascii() and not self._decoder.getstate()[0] and not final:
            self.line_ends += data.count(b"\n")
            self.returns += data.count(b"\r")
            return True
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError:
            return False
        self.line_ends += text.count("\n")
        self.returns += text.count("\r")
        return True


class FileInspector:
    """A file inspector is fed a file's bytes in order and decides whether and how to read it."""

    def __init__(self, limits: ImportLimits | None = None) -> None:
        self._limits = limits or ImportLimits()
        self._digest = hashlib.sha256()
        self._size = 0
        self._start = b""
        self._candidates: list[_Candidate] | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            FileRefusedError: a spreadsheet, archive or PDF, too many bytes or lines, or no known encoding.

        """
        self._digest.update(data)
        self._size += len(data)
        if self._size > self._limits.file_bytes:
            raise FileRefusedError(f"文件过大：超过 {self._limits.file_bytes} 字节")
        if self._candidates is None:
            self._start += data
            if len(self._start) < _LONGEST_START:
                return
            data, self._start = self._start, b""
        self._offer(data, final=False)

    def finish(self) -> FileFacts:
        """Return the facts once all bytes were fed.

        Raises:
            FileRefusedError: as :meth:`feed`, and for an empty file.

        """
        if self._size == 0:
            raise FileRefusedError("文件为空")
        survivor = self._offer(self._start, final=True)
        return FileFacts(survivor.encoding, self._digest.hexdigest(), self._size, _line_count(survivor))

    def _offer(self, data: bytes, *, final: bool) -> _Candidate:
        candidates = self._candidates if self._candidates is not None else _candidates_for(data)
        self._candidates = [one for one in candidates if one.accept(data, final=final)]
        if not self._candidates:
            raise FileRefusedError("无法识别文件编码：既不是 UTF-8（或带 BOM 的 UTF-16），也不是 GB18030")
        best = self._candidates[0]
        if _line_count(best) > self._limits.lines:
            raise FileRefusedError(f"行数过多：超过 {self._limits.lines} 行，请拆分后再导入")
        return best


def _line_count(candidate: _Candidate) -> int:
    return max(candidate.line_ends, candidate.returns)


def _candidates_for(start: bytes) -> list[_Candidate]:
    for signature, text in _SIGNATURES:
        if start.startswith(signature):
            raise FileRefusedError(text)
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return [_Candidate(encoding)]
    return [_Candidate("utf-8"), _Candidate("gb18030")]
