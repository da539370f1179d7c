"""Files of an import on this machine: gone with their use, and a reason to wait when there is no room."""

import tempfile
from typing import IO, Final

from junhong_cmp.errors import system_reason
from junhong_cmp.storage.errors import StorageUnavailableError

_PREFIX: Final = "junhong-import-"


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a private folder; raises StorageUnavailableError when this machine can't."""
    try:
        return tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    except OSError as error:
        raise no_room(error) from error


def temporary_file() -> IO[bytes]:
    """Open a nameless file; raises StorageUnavailableError when this machine can't."""
    try:
        return tempfile.TemporaryFile(prefix=_PREFIX)
    except OSError as error:
        raise no_room(error) from error


def no_room(error: OSError) -> StorageUnavailableError:
    """Return what to raise when a temporary file can't be made or written: somebody has to make room."""
    try:
        place = tempfile.gettempdir()
    except FileNotFoundError:  # none of the usual folders could be written to
        return StorageUnavailableError("本机临时目录无法写入：都已满、只读或不存在；可用 TMPDIR 指定其他目录")
    return StorageUnavailableError(
        f"本机临时目录无法写入：{place}：{system_reason(error)}；可清理，或用 TMPDIR 指定其他目录"
    )
