"""The ZIP archive that an XLSX workbook is: checked before anything is inflated, and counted while it is."""

import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Final, Self

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.limits import WorkbookLimits

_PIECE_BYTES: Final = 64 * 1024
_ENCRYPTED: Final = 0x1
_DAMAGED: Final = "工作簿已损坏：压缩结构不完整或校验不符，请重新导出或重新上传"
_FAULTS: Final = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)


class Archive:
    """An archive gives out the parts of a workbook by name and refuses bombs.

    Names are compared as office programs do: without regard to case, and with either kind of slash.
    """

    def __init__(self, file: IO[bytes], limits: WorkbookLimits) -> None:
        self._limits = limits
        self._inflated = 0
        try:
            self._zip = zipfile.ZipFile(file)
        except _FAULTS as error:
            raise FileRefusedError(_DAMAGED) from error
        try:
            self._entries = self._checked_entries()
        except FileRefusedError:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return _plain(name) in self._entries

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the inflated bytes of a part.

        Raises:
            FileRefusedError: no such part, a damaged one, or more bytes than the archive declared.

        """
        entry = self._entries.get(_plain(name))
        if entry is None:
            raise FileRefusedError(f"工作簿已损坏：缺少 {show(_plain(name))}")
        try:
            with self._zip.open(entry) as part:
                while piece := part.read(_PIECE_BYTES):
                    self._count(len(piece))
                    yield piece
        except _FAULTS as error:
            raise FileRefusedError(_DAMAGED) from error

    def read(self, name: str) -> bytes:
        """Return a whole part; for the small ones, raises as :meth:`pieces` and for a large one."""
        data = bytearray()
        for piece in self.pieces(name):
            data += piece
            if len(data) > self._limits.part_bytes:
                raise FileRefusedError("工作簿结构异常：目录部分过大")
        return bytes(data)

    def _count(self, size: int) -> None:
        self._inflated += size
        # A sheet may be read twice: once to look for the header, once for its rows.
        if self._inflated > 2 * self._limits.inflated_bytes:
            raise FileRefusedError(_too_large(self._limits))

    def _checked_entries(self) -> dict[str, zipfile.ZipInfo]:
        entries = self._zip.infolist()
        if len(entries) > self._limits.entries:
            raise FileRefusedError(
                f"工作簿结构异常：含有 {len(entries)} 个部分，超过 {self._limits.entries} 个"
            )
        by_name = {_plain(entry.filename): entry for entry in entries}
        if len(by_name) != len(entries):
            raise FileRefusedError("工作簿结构异常：有同名的部分")
        if any(entry.flag_bits & _ENCRYPTED for entry in entries):
            raise FileRefusedError("文件已加密（设有密码），请取消密码后再导入")
        if any(entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} for entry in entries):
            raise FileRefusedError("工作簿结构异常：使用了不支持的压缩方法")
        inflated = sum(entry.file_size for entry in entries)
        packed = sum(entry.compress_size for entry in entries)
        if inflated > self._limits.inflated_bytes:
            raise FileRefusedError(_too_large(self._limits))
        if inflated > self._limits.ratio_from_bytes and inflated > self._limits.ratio * max(packed, 1):
            raise FileRefusedError(f"工作簿疑似压缩炸弹：解压后是压缩数据的 {inflated // max(packed, 1)} 倍")
        return by_name


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _too_large(limits: WorkbookLimits) -> str:
    return f"工作簿过大：解压后超过 {limits.inflated_bytes // 1024**2} MB，请拆分或另存为 CSV 后再导入"
