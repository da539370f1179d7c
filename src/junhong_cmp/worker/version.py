"""Which version of the program this is; imports nothing that takes time."""

from typing import Final

_DISTRIBUTION: Final = "junhong-cmp"


def program_version() -> str:
    """Return the version of this program as it was installed."""
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, and hardly ever asked for

    return version(_DISTRIBUTION)
