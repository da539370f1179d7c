"""The data folder: one run at a time, with everything it keeps in a known place."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Final

from junhong_cmp.errors import ConfigError, DependencyUnavailableError, system_reason

_NEEDED_FREE_BYTES: Final = 200 * 1024 * 1024
_NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_ELSEWHERE: Final = "用 --data-dir、JUNHONG_DATA_DIR 指定其他目录"


class DataFolder:
    """A data folder belongs to one running ``junhong up`` at a time, by a lock the kernel gives back.

    The lock is an open file, not the file's existence: a run that was killed holds nothing.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() fails below closed folders
        self._lock: int | None = None

    @property
    def logs(self) -> Path:
        """Log files of the child processes."""
        return self.root / "logs"

    @property
    def pids(self) -> Path:
        """Records of the running child processes."""
        return self.root / "pids"

    @property
    def storage(self) -> Path:
        """Files of the object storage."""
        return self.root / "storage"

    @property
    def is_open(self) -> bool:
        """Whether this run holds the folder."""
        return self._lock is not None

    def open(self, *, mode: int) -> None:
        """Create the folder and take its lock.

        Raises:
            ConfigError: it cannot be created or written.
            DependencyUnavailableError: another run holds it, or the disk is nearly full.

        """
        try:
            self._make(mode)
            self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.root, error) from error
        try:
            self._take_lock()
            self._check_space()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _make(self, mode: int) -> None:
        if not self.root.is_dir():
            self.root.mkdir(parents=True)
            self.root.chmod(mode)
        for folder in (self.logs, self.pids, self.storage):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _take_lock(self) -> None:
        assert self._lock is not None  # noqa: S101 - opened just above
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip() or "未知"
            raise DependencyUnavailableError(
                f"数据目录 {self.root} 正被另一个 junhong up 使用（进程 {holder}）；"
                "请先结束它，或用 --data-dir 指定其他目录"
            ) from error
        except OSError as error:
            raise ConfigError(
                [f"数据目录 {self.root} 所在的文件系统不支持文件锁：{system_reason(error)}"]
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.root).free
        if free < _NEEDED_FREE_BYTES:
            free_mib, needed_mib = free // 1024**2, _NEEDED_FREE_BYTES // 1024**2
            raise DependencyUnavailableError(
                f"数据目录 {self.root} 所在磁盘只剩 {free_mib} MiB，至少需要 {needed_mib} MiB；"
                f"请腾出空间，或{_ELSEWHERE}"
            )


def _unusable(root: Path, error: OSError) -> ConfigError | DependencyUnavailableError:
    if error.errno == errno.ENOSPC:
        return DependencyUnavailableError(f"数据目录 {root} 所在磁盘已满；请腾出空间，或{_ELSEWHERE}")
    if error.errno in _NOT_WRITABLE:
        return ConfigError([f"数据目录 {root} 没有写权限；请修改权限，或{_ELSEWHERE}"])
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return ConfigError([f"数据目录 {root} 不可用：路径中有一段不是目录；请{_ELSEWHERE}"])
    if error.errno == errno.ENOENT:  # its parents were to be made: the file system, /proc say, refuses
        return ConfigError([f"数据目录 {root} 不可用：该处不能建立目录；请{_ELSEWHERE}"])
    if error.errno == errno.ENAMETOOLONG:
        return ConfigError([f"数据目录 {root} 的路径过长；请{_ELSEWHERE}"])
    return ConfigError([f"数据目录 {root} 不可用：{system_reason(error)}；请{_ELSEWHERE}"])
