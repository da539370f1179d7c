"""Errors of object storage, by what a caller does about them.

::

    StorageError
    ├── StorageUrlError          exit 78: the operator corrects the URL
    ├── StorageKeyError          a bug or an attack: refuse, never retry
    ├── ObjectMissingError       terminal: nothing will put the object back
    ├── StorageDeniedError       terminal until the operator grants access
    ├── StorageFullError         terminal until the operator makes room
    └── StorageUnavailableError  try again later
"""

from junhong_cmp.errors import ExitCode, JunhongError


class StorageError(JunhongError):
    """Root of the storage errors."""


class StorageUrlError(StorageError):
    """The storage URL is malformed or names a kind of storage that is not supported."""

    exit_code = ExitCode.CONFIGURATION


class StorageKeyError(StorageError):
    """The object key could leave the storage root or is not portable."""


class ObjectMissingError(StorageError):
    """There is no object under this key."""


class StorageDeniedError(StorageError):
    """The storage does not let this program read or write the object."""

    exit_code = ExitCode.DEPENDENCY_UNAVAILABLE


class StorageFullError(StorageError):
    """There is no room for the object."""

    exit_code = ExitCode.DEPENDENCY_UNAVAILABLE


class StorageUnavailableError(StorageError):
    """The storage refused or did not answer; the same call may work later."""

    exit_code = ExitCode.DEPENDENCY_UNAVAILABLE
