"""How ``junhong up`` talks: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from junhong_cmp.cli.up_figures import Figures
from junhong_cmp.imports.model import ImportTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is shown once a second: the import until it is done, then the figures too."""

    elapsed: timedelta
    rows: int
    imported: ImportTask
    figures: Figures | None = None


class Screen(Protocol):
    """Where a run is shown."""

    def report(self, lines: Sequence[tuple[str, str]]) -> None:
        """Show what has been started, as (name, value) pairs."""
        ...

    def say(self, text: str) -> None:
        """Show one sentence."""
        ...

    def show(self, progress: Progress) -> None:
        """Show how things stand."""
        ...

    def close(self) -> None:
        """Leave what was shown last and give the terminal back."""
        ...


def open_screen(*, as_json: bool) -> Screen:
    """Return the screen for this terminal; with ``as_json`` standard output is left to the summary."""
    console = Console(stderr=as_json)
    return LiveScreen(console) if console.is_terminal else PlainScreen(console)


class PlainScreen:
    """A plain screen prints one line for everything, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def report(self, lines: Sequence[tuple[str, str]]) -> None:
        """Print the start-up report."""
        self.say("启动报告")
        for name, value in lines:
            self.say(f"  {name}：{value}")

    def say(self, text: str) -> None:
        """Print one sentence, at once even into a pipe."""
        self._console.file.write(f"{text}\n")
        self._console.file.flush()

    def show(self, progress: Progress) -> None:
        """Print one line."""
        cells = "  ".join(f"{name} {value}" for name, value in _cells(progress))
        self.say(f"[{_clock(progress.elapsed)}] {cells}")

    def close(self) -> None:
        """Nothing to give back."""


class LiveScreen:
    """A live screen keeps a table on the terminal and redraws it in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def report(self, lines: Sequence[tuple[str, str]]) -> None:
        """Print the start-up report in a frame above the table."""
        table = Table.grid(padding=(0, 2))
        for name, value in lines:
            table.add_row(f"[bold]{name}[/bold]", value)
        self._console.print(Panel(table, title="启动报告", expand=False))

    def say(self, text: str) -> None:
        """Print one sentence above the table."""
        self._console.print(text, highlight=False)

    def show(self, progress: Progress) -> None:
        """Redraw the table."""
        table = Table(title=f"运行 {_clock(progress.elapsed)}，Ctrl-C 停止", title_justify="left")
        cells = _cells(progress)
        for name, _ in cells:
            table.add_column(name, justify="right")
        table.add_row(*(value for _, value in cells))
        if self._live is None:
            self._live = Live(table, console=self._console, auto_refresh=False, redirect_stderr=False)
            self._live.start()
        self._live.update(table, refresh=True)

    def close(self) -> None:
        """Leave the last table standing."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _cells(progress: Progress) -> list[tuple[str, str]]:
    figures, task = progress.figures, progress.imported
    if figures is None:
        return [
            ("正在导入", f"{task.total}/{progress.rows}"),
            ("成功", str(task.imported)),
            ("拒绝", str(task.rejected)),
        ]
    return [
        ("卡", str(figures.cards)),
        ("待轮询", str(figures.waiting)),
        ("到期", str(figures.due)),
        ("已轮询", str(figures.polled)),
        ("每秒", f"{figures.polled_per_s:.1f}"),
        ("滞后 p95", _lag(figures.lag_p95)),
        ("失败", str(figures.failed)),
        ("限流", str(figures.throttled)),
    ]


def _lag(lag: timedelta | None) -> str:
    return "–" if lag is None else f"{lag.total_seconds() * 1000:.0f} ms"


def _clock(elapsed: timedelta) -> str:
    minutes, seconds = divmod(int(elapsed.total_seconds()), 60)
    return f"{minutes:02d}:{seconds:02d}"
