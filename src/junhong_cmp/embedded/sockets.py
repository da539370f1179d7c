"""Socket folders: unix socket paths are limited to about a hundred bytes, data folders are not."""

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Final

from junhong_cmp.embedded.account import Account
from junhong_cmp.errors import ConfigError

# sockaddr_un.sun_path is 108 bytes on Linux and 104 on macOS, with a closing zero.
SOCKET_PATH_BYTES: Final = 107 if sys.platform == "linux" else 103
PRIVATE: Final = 0o700
PASSABLE: Final = 0o711  # root's folders: PostgreSQL's account passes through, but lists nothing
_LONGEST_NAME: Final = "pg/.s.PGSQL.5432"


def choose_socket_folder(preferred: Path, account: Account | None) -> Path:
    """Make and return ``preferred`` when it serves, else a private folder with a short path.

    It serves when socket paths in it are short enough and ``account`` can get there. The short one has the
    same name at every start, so that what a killed run left in it is found again.

    Raises:
        ConfigError: no folder is short enough, or somebody else owns the short one.

    """
    mode = PRIVATE if account is None else PASSABLE
    if _fits(preferred) and (account is None or account.can_enter(preferred.parent)):
        preferred.mkdir(mode=mode, exist_ok=True)
        preferred.chmod(mode)
        return preferred
    digest = hashlib.sha256(os.fsencode(preferred)).hexdigest()[:12]
    name = f"junhong-{os.geteuid()}-{digest}"
    for parent in (Path(tempfile.gettempdir()).resolve(), Path("/tmp")):  # noqa: S108 - private_folder checks
        if _fits(parent / name) and (account is None or account.can_enter(parent)):
            return private_folder(parent / name, mode=mode)
    raise ConfigError(
        [f"套接字路径不能超过 {SOCKET_PATH_BYTES} 字节，数据目录过长：{preferred.parent}；请换一处较短的"]
    )


def private_folder(folder: Path, *, mode: int) -> Path:
    """Make a folder in a place everybody can write to, refusing one that somebody else put there.

    Raises:
        ConfigError: the name is taken by a link, a file or another account's folder.

    """
    folder.mkdir(mode=mode, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ConfigError([f"目录 {folder} 已被其他账号占用，请删除它，或设置 TMPDIR 指向别处"])
    folder.chmod(mode)
    return folder


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / _LONGEST_NAME)) <= SOCKET_PATH_BYTES
