"""Where tables are printed."""

import os
from typing import Final

from rich.console import Console
from rich.table import Column, Table

_UNLIMITED: Final = 1_000


def open_console() -> Console:
    """Return the console of standard output; no window limits a line in a pipe."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=_UNLIMITED)


def open_table(*names: str, title: str | None = None) -> Table:
    """Return a table that folds what a narrow window has no room for, and cuts nothing off."""
    return Table(*(Column(name, overflow="fold") for name in names), title=title)
