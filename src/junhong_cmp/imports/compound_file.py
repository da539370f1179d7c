"""OLE compound files: the small file system inside an XLS workbook, and inside every encrypted workbook."""

import struct
from collections.abc import Iterator
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError

_HEADER_BYTES: Final = 512
_ENTRY_BYTES: Final = 128
_LAST_SECTOR: Final = 0xFFFFFFFA
"""Numbers from here on mean: end of chain, free, and the tables' own sectors."""
_STREAM: Final = 2
_ROOT: Final = 5
_SECTOR_SHIFTS: Final = {9, 12}
_MINI_SHIFT: Final = 6
_HEADER_FAT_SECTORS: Final = 109


class CompoundFile:
    """A compound file lists its streams and reads them; chains that loop or lead outside are refused."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self._read_tables()
        except (struct.error, IndexError, UnicodeError) as error:
            raise FileRefusedError(_DAMAGED) from error

    def __contains__(self, name: str) -> bool:
        return name in self._streams

    def read(self, name: str) -> bytes:
        """Return a stream; raises FileRefusedError when it is missing or damaged."""
        if name not in self._streams:
            raise FileRefusedError(_DAMAGED)
        start, size = self._streams[name]
        if size >= self._mini_cutoff:
            content = self._read_chain(start)
        else:
            content = b"".join(
                self._mini[at << _MINI_SHIFT : (at + 1) << _MINI_SHIFT]
                for at in _follow(start, self._mini_table)
            )
        if len(content) < size:
            raise FileRefusedError(_DAMAGED)
        return content[:size]

    def _read_tables(self) -> None:
        shift, mini_shift = struct.unpack_from("<HH", self._data, 30)
        if shift not in _SECTOR_SHIFTS or mini_shift != _MINI_SHIFT:
            raise FileRefusedError(_DAMAGED)
        self._shift = shift
        (directory,) = struct.unpack_from("<I", self._data, 48)
        self._mini_cutoff, mini_table = struct.unpack_from("<II", self._data, 56)
        self._table: list[int] = []
        for sector in self._table_sectors():
            self._table += _numbers(self._sector(sector))
        self._mini_table = list(_numbers(self._read_chain(mini_table)))
        self._streams: dict[str, tuple[int, int]] = {}
        self._mini = b""
        self._read_directory(self._read_chain(directory))

    def _read_directory(self, entries: bytes) -> None:
        for at in range(0, len(entries) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
            name_bytes, kind = struct.unpack_from("<HB", entries, at + 64)
            start, size = struct.unpack_from("<II", entries, at + 116)
            if kind == _ROOT:
                self._mini = self._read_chain(start)[:size]
            elif kind == _STREAM:
                name = entries[at : at + max(min(name_bytes, 64) - 2, 0)].decode("utf-16-le", "replace")
                self._streams.setdefault(name, (start, size))

    def _table_sectors(self) -> Iterator[int]:
        """Yield the sectors of the sector table: 109 from the header, more from a chain of their own."""
        yield from _used(struct.unpack_from(f"<{_HEADER_FAT_SECTORS}I", self._data, 76))
        (further,) = struct.unpack_from("<I", self._data, 68)
        seen: set[int] = set()
        while further < _LAST_SECTOR:
            if further in seen:
                raise FileRefusedError(_DAMAGED)
            seen.add(further)
            *sectors, further = _numbers(self._sector(further))
            yield from _used(sectors)

    def _read_chain(self, start: int) -> bytes:
        return b"".join(map(self._sector, _follow(start, self._table)))

    def _sector(self, number: int) -> bytes:
        start = (number + 1) << self._shift
        if start < _HEADER_BYTES or start >= len(self._data):
            raise FileRefusedError(_DAMAGED)
        return self._data[start : start + (1 << self._shift)]


_DAMAGED: Final = "工作簿已损坏：文件结构不完整，请重新导出或重新上传"


def _used(numbers: tuple[int, ...] | list[int]) -> list[int]:
    return [number for number in numbers if number < _LAST_SECTOR]


def _numbers(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


def _follow(start: int, table: list[int]) -> Iterator[int]:
    steps = 0
    while start < _LAST_SECTOR:
        if start >= len(table) or steps > len(table):
            raise FileRefusedError(_DAMAGED)
        yield start
        start, steps = table[start], steps + 1
