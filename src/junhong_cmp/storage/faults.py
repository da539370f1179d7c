"""What a failed call of a store means for its caller."""

import errno
import re
from typing import Final

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from junhong_cmp.storage.errors import (
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)

_SUMMARY_CHARS: Final = 200
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_ACCESS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
# A local store hands the system's errors on as text only; an S3 service has codes for a spent quota.
_ERRNO_IN_TEXT: Final = re.compile(r"\(os error (\d+)\)|\bcode: (\d+), kind:")
_QUOTA_IN_TEXT: Final = re.compile(r"QuotaExceeded|XMinioStorageFull|507 Insufficient Storage")


def storage_fault(error: Exception) -> StorageError:
    """Return the error to raise instead of what a store raised; its text holds no request headers."""
    number, text = _errno_of(error), str(error)
    if number in _NO_ROOM or _QUOTA_IN_TEXT.search(text):
        return StorageFullError("存储空间已满")
    if number in _NO_ACCESS or isinstance(
        error, PermissionError | PermissionDeniedError | UnauthenticatedError
    ):
        return StorageDeniedError("存储拒绝访问：没有读写权限，或凭据无效")
    # Only the first line: what follows repeats the request with its headers.
    return StorageUnavailableError(f"对象存储暂不可用：{text.partition(chr(10))[0][:_SUMMARY_CHARS]}")


def _errno_of(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _ERRNO_IN_TEXT.search(str(error))
    return int(found[1] or found[2]) if found else None
