"""Object keys: what is allowed, checked before any storage sees it."""

import re
from typing import Final

from junhong_cmp.storage.errors import StorageKeyError

_KEY: Final = re.compile(r"[A-Za-z0-9._/-]{1,512}")


def check_key(key: str) -> str:
    """Return ``key`` if it is a relative path of plain segments.

    Raises:
        StorageKeyError: characters outside ``A-Za-z0-9._/-``, longer than 512, absolute, or with an
            empty, ``.`` or ``..`` segment. The text never repeats the key: it may be hostile.

    """
    if _KEY.fullmatch(key) is None:
        raise StorageKeyError("对象键无效：只允许字母、数字与 . _ / -，长度 1–512")
    if any(segment in {"", ".", ".."} for segment in key.split("/")):
        raise StorageKeyError("对象键无效：不允许绝对路径、空段、. 或 ..")
    return key
