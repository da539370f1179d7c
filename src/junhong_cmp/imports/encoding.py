"""Which encoding a file is in, decided over all of its bytes without holding them.

The order is fixed: byte order mark, UTF-16 by its zero bytes, strict UTF-8, GB18030, else the file is
refused. There is no guessing by frequency: a detector is wrong on short files of digits with three
Chinese headers. A file that was UTF-8 until some byte is damaged, not GB18030.
"""

import codecs
import hashlib
import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import START_BYTES, FileFormat, recognise_format
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE_CHAR: Final = re.compile("[\u0800-\uffff]")
_PROOF_CHARS: Final = 4
"""So many valid three-byte sequences, and nothing invalid before them, do not happen in GB18030."""
_CUT_SHORT: Final = {"unexpected end of data", "incomplete multibyte sequence", "truncated data"}
"""What the decoders say to a character whose last bytes are missing."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one pass over a file tells: its encoding, SHA-256 (hex), size, and number of line ends.

    A workbook has no encoding (``""``), and its rows are not counted before it is parsed (0).
    """

    encoding: str
    sha256: str
    size: int
    lines: int
    format: FileFormat = FileFormat.TEXT


class _Candidate:
    """A candidate is an encoding the bytes seen so far are valid in."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._wide = encoding.startswith("utf-16")
        self._proof = 0
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
        except UnicodeDecodeError as error:
            self._refuse_damaged(error)
            return False
        self._gather_proof(text)
        self.line_ends += text.count("\n")
        self.returns += text.count("\r")
        return True

    def _gather_proof(self, text: str) -> None:
        if self._proof < _PROOF_CHARS and not text.isascii():
            self._proof += sum(1 for _ in islice(_WIDE_CHAR.finditer(text), _PROOF_CHARS))

    def _refuse_damaged(self, error: UnicodeDecodeError) -> None:
        """Refuse a file that this encoding alone explains, but for the byte where it breaks."""
        self._gather_proof(error.object[: error.start].decode(self.encoding, errors="ignore"))
        name = self.encoding.removesuffix("-sig").upper()
        if (self._proof or self._wide) and error.reason in _CUT_SHORT:
            raise FileRefusedError(f"文件已损坏：{name} 文本在一个字符中间被截断，请重新导出或重新上传")
        if self._proof >= _PROOF_CHARS and name == "UTF-8":
            line = self.line_ends + error.object[: error.start].count(b"\n") + 1
            raise FileRefusedError(
                f"文件已损坏或混用了两种编码：第 {line} 行之前是 UTF-8，从该行起不是；请统一编码后重新导出"
            )


class FileInspector:
    """A file inspector is fed a file's bytes in order and decides whether and how to read it."""

    def __init__(
        self, limits: ImportLimits | None = None, workbook_limits: WorkbookLimits | None = None
    ) -> None:
        self._limits = limits or ImportLimits()
        self._workbook_limits = workbook_limits or WorkbookLimits()
        self._digest = hashlib.sha256()
        self._size = 0
        self._start = b""
        self._format: FileFormat | None = None
        self._candidates: list[_Candidate] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            FileRefusedError: an archive or PDF, too many bytes or lines, or no known encoding.

        """
        self._digest.update(data)
        self._size += len(data)
        if self._format is None:
            self._start += data
            if len(self._start) < START_BYTES:
                refuse_large(self._size, self._limits.file_bytes)
                return
            data, self._start = self._start, b""
            self._settle_format(data)
        if self._format is FileFormat.TEXT:
            refuse_large(self._size, self._limits.file_bytes)
            self._offer(data, final=False)
        else:
            refuse_large(self._size, self._workbook_limits.file_bytes)

    def finish(self) -> FileFacts:
        """Return the facts once all bytes were fed.

        Raises:
            FileRefusedError: as :meth:`feed`, and for an empty file.

        """
        if self._size == 0:
            raise FileRefusedError("文件为空")
        if self._format is None:
            self._settle_format(self._start)
        digest = self._digest.hexdigest()
        if self._format is not None and self._format is not FileFormat.TEXT:
            return FileFacts("", digest, self._size, 0, self._format)
        survivor = self._offer(self._start, final=True)
        return FileFacts(survivor.encoding, digest, self._size, _line_count(survivor))

    def _settle_format(self, start: bytes) -> None:
        self._format = recognise_format(start)
        self._candidates = _candidates_for(start)

    def _offer(self, data: bytes, *, final: bool) -> _Candidate:
        self._candidates = [one for one in self._candidates if one.accept(data, final=final)]
        if not self._candidates:
            raise FileRefusedError("无法识别文件编码：既不是 UTF-8 或 UTF-16，也不是 GB18030（GBK）")
        best = self._candidates[0]
        if _line_count(best) > self._limits.lines:
            raise FileRefusedError(f"行数过多：超过 {self._limits.lines} 行，请拆分后再导入")
        return best


def refuse_large(size: int, limit: int) -> None:
    """Refuse a file of more than ``limit`` bytes."""
    if size > limit:
        raise FileRefusedError(f"文件过大：超过 {limit} 字节，请拆分后再导入")


def _line_count(candidate: _Candidate) -> int:
    return max(candidate.line_ends, candidate.returns)


def _candidates_for(start: bytes) -> list[_Candidate]:
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return [_Candidate(encoding)]
    if (unmarked := _unmarked_utf16(start[:START_BYTES])) is not None:
        return [_Candidate(unmarked)]
    return [_Candidate("utf-8"), _Candidate("gb18030")]


def _unmarked_utf16(start: bytes) -> str | None:
    """Return the UTF-16 whose zero bytes ``start`` has: on one side of its pairs only.

    Card files are mostly digits, so every second byte of them is zero; a few characters such as ``一``
    (U+4E00) have their zero on the other side.
    """
    even, odd = start[::2].count(0), start[1::2].count(0)
    enough = len(start) // 8
    if odd > enough and odd > 8 * even:
        return "utf-16-le"
    if even > enough and even > 8 * odd:
        return "utf-16-be"
    return None
