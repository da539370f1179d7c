"""The project's own errors, by what a caller does about them.

::

    JunhongError
    ├── ConfigError              exit 78: the operator corrects the configuration
    ├── SchemaOutdatedError      exit 78: the operator runs ``junhong migrate``
    ├── DependencyUnavailableError   exit 69: a service stayed unreachable at start
    └── CriticalLoopError        exit 70: a loop that must not end has ended

Packages add their own families below :class:`JunhongError` in their own
``errors.py``. ``junhong_cmp.asynq`` stands alone and has a root of its own.
Every message is Chinese, names the thing that is wrong and says the remedy.
"""

import errno
from collections.abc import Sequence
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """Exit codes of the ``junhong`` program; a second signal exits with 128+n."""

    CLEAN = 0
    DEPENDENCY_UNAVAILABLE = 69
    CRITICAL_LOOP_DIED = 70
    CONFIGURATION = 78


class JunhongError(Exception):
    """Root of all errors raised on purpose outside ``junhong_cmp.asynq``."""

    exit_code: ExitCode = ExitCode.CRITICAL_LOOP_DIED


class ConfigError(JunhongError):
    """The configuration is wrong; ``problems`` lists every fault found, one sentence each."""

    exit_code = ExitCode.CONFIGURATION

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("配置错误：\n" + "\n".join(f"  - {problem}" for problem in self.problems))


class SchemaOutdatedError(JunhongError):
    """The database schema is missing or older than this program needs."""

    exit_code = ExitCode.CONFIGURATION


class DependencyUnavailableError(JunhongError):
    """A service could not be reached, or a local resource is taken, within the start limit."""

    exit_code = ExitCode.DEPENDENCY_UNAVAILABLE


class CriticalLoopError(JunhongError):
    """A loop that must run as long as the process does has ended."""

    exit_code = ExitCode.CRITICAL_LOOP_DIED


_SYSTEM_REASONS: Final = {
    errno.ENOENT: "不存在",
    errno.EACCES: "没有权限",
    errno.EPERM: "没有权限",
    errno.EISDIR: "是目录而不是文件",
    errno.ENOTDIR: "路径中有一段不是目录",
    errno.EEXIST: "已存在",
    errno.ENOSPC: "磁盘已满",
    errno.EDQUOT: "磁盘配额已用完",
    errno.EROFS: "文件系统只读",
    errno.ENAMETOOLONG: "名称过长",
    errno.ELOOP: "符号链接成环",
    errno.EMFILE: "打开的文件过多",
}


def system_reason(error: OSError) -> str:
    """Return in Chinese why the operating system refused a file or folder."""
    fallback = f"系统错误 {error.errno}（{error.strerror}）"
    return fallback if error.errno is None else _SYSTEM_REASONS.get(error.errno, fallback)
