"""Errors of card imports, by what a caller does about them.

::

    CardImportError
    ├── FileRefusedError       terminal: only another file helps
    ├── ParserNotStartedError  this machine is short of something: try again later
    └── AccountUnknownError    the operator names an existing account
"""

from junhong_cmp.errors import JunhongError


class CardImportError(JunhongError):
    """Root of the import errors."""


class FileRefusedError(CardImportError):
    """The file as a whole can't be imported; retrying the same bytes never helps."""


class ParserNotStartedError(CardImportError):
    """The process that would read the file can't be started now."""


class AccountUnknownError(CardImportError):
    """There is no carrier account with this code."""
