"""Where tables are printed."""

import os
from typing import Final

from rich.console import Console

_UNLIMITED: Final = 1_000


def open_console() -> Console:
    """Return the console of standard output; no window limits a line in a pipe."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=_UNLIMITED)
