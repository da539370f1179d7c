"""Errors of exports: what was asked for is not there, or its file can't be written."""

from junhong_cmp.errors import ExitCode, JunhongError


class ExportError(JunhongError):
    """Root of the export errors."""


class NothingFoundError(ExportError):
    """There is no such card or account; the text says what was looked for."""


class FileNotWrittenError(ExportError):
    """The file can't be written where it was asked for."""

    exit_code = ExitCode.DEPENDENCY_UNAVAILABLE


class NobodyReadsError(ExportError):
    """The other end of the pipe has been closed: it has read enough."""
