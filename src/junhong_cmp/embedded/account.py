"""The unprivileged account PostgreSQL runs under when we are root, and what it can reach."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from junhong_cmp.errors import DependencyUnavailableError

# Existing accounts only: adding one would change the machine.
_CANDIDATES: Final = ("postgres", "nobody", "daemon")


@dataclass(frozen=True, slots=True)
class Account:
    """An operating-system account a child process is started under."""

    name: str
    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        """Whether the account may pass through ``folder`` and every folder above it, by their modes."""
        resolved = folder.resolve()
        return all(self._may_search(place) for place in (resolved, *resolved.parents))

    def take_over(self, folder: Path) -> None:
        """Create ``folder`` if need be and give it, and it alone, to the account with mode 0700."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)

    def _may_search(self, folder: Path) -> bool:
        status = folder.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def unprivileged_account() -> Account | None:
    """Return the account to drop to, or None when this process is not root already.

    Raises:
        DependencyUnavailableError: we are root and the machine has none of the usual accounts.

    """
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    candidates = "、".join(_CANDIDATES)
    raise DependencyUnavailableError(
        f"以 root 运行时，内置 PostgreSQL 需要一个非特权系统账号（{candidates}），本机一个都没有；"
        "请改用普通用户运行"
    )


def alias_for(uid: int) -> int | None:
    """Return whose uid ``initdb`` has to be lent: it refuses to run under a number without a name.

    None when ``uid`` has a name of its own, or when the machine has none to lend.
    """
    try:
        pwd.getpwuid(uid)
    except KeyError:
        lenders = [entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0]
        return max(lenders, default=None)
    return None
