"""How ``junhong up`` talks: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from junhong_cmp.cli.held_claims import held_text
from junhong_cmp.cli.up_figures import AccountFigures, Figures
from junhong_cmp.cli.up_imports import ImportCounts

_Cells = list[tuple[str, str]]
_TEXTS: Final = frozenset({"账号", "驱动", "暂停"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is shown once a second: the imports until they are done, then the figures too."""

    elapsed: timedelta
    imports: ImportCounts
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
        """Print one line, and one for each account if there are several."""
        self.say(f"[{_clock(progress.elapsed)}] {_line(_cells(progress))}")
        for account in _several(progress):
            self.say(f"        {_line(_account_cells(account))}")
        for notice in _notices(progress):
            self.say(f"        {notice}")

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
        shown = Group(
            _table([_cells(progress)], title=f"运行 {_clock(progress.elapsed)}，Ctrl-C 停止"),
            *(
                [_table([_account_cells(each) for each in accounts])]
                if (accounts := _several(progress))
                else []
            ),
            *map(Text, _notices(progress)),
        )
        if self._live is None:
            self._live = Live(shown, console=self._console, auto_refresh=False, redirect_stderr=False)
            self._live.start()
        self._live.update(shown, refresh=True)

    def close(self) -> None:
        """Leave the last table standing."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _table(rows: Sequence[_Cells], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left")
    for name, _ in rows[0]:
        table.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    for cells in rows:
        table.add_row(*(value for _, value in cells))
    return table


def _line(cells: _Cells) -> str:
    return "  ".join(f"{name} {value}" for name, value in cells)


def _cells(progress: Progress) -> _Cells:
    figures, imports = progress.figures, progress.imports
    if figures is None:
        return [
            ("正在导入", f"{imports.total}/{imports.rows}"),
            ("成功", str(imports.imported)),
            ("拒绝", str(imports.rejected)),
        ]
    return [
        ("卡", str(figures.cards)),
        ("待轮询", str(figures.waiting)),
        ("到期", str(figures.due)),
        ("已轮询", str(figures.polled)),
        ("每秒", f"{figures.polled_per_s:.1f}"),
        ("近一分钟滞后 p95", _lag(figures.recent_lag_p95)),
        ("失败", str(figures.failed)),
        ("限流", str(figures.throttled)),
    ]


def _notices(progress: Progress) -> tuple[str, ...]:
    """Return why polling rests, where that is not an account's own pause."""
    wait = None if progress.figures is None else progress.figures.claims_held
    return () if wait is None else (held_text(wait),)


def _several(progress: Progress) -> tuple[AccountFigures, ...]:
    """Return the accounts to be shown one by one: those that are not alone."""
    accounts = () if progress.figures is None else progress.figures.accounts
    return accounts if len(accounts) > 1 else ()


def _account_cells(account: AccountFigures) -> _Cells:
    return [
        ("账号", account.account),
        ("驱动", account.driver),
        ("卡", str(account.cards)),
        ("已轮询", str(account.polled)),
        ("每秒", f"{account.polled_per_s:.1f}"),
        ("滞后 p95", _lag(account.recent_lag_p95)),
        ("失败", str(account.failed)),
        ("限流", str(account.throttled)),
        ("暂停", _pause(account)),
    ]


def _pause(account: AccountFigures) -> str:
    pause = account.pause
    if pause is None:
        return "否"
    if not account.paused:
        return f"否（曾{pause.text}）"
    until = "直到人工恢复" if pause.until is None else f"至 {pause.until.astimezone():%H:%M:%S}"
    return f"{pause.text}，{until}"


def _lag(lag: timedelta | None) -> str:
    return "–" if lag is None else f"{lag.total_seconds() * 1000:.0f} ms"


def _clock(elapsed: timedelta) -> str:
    minutes, seconds = divmod(int(elapsed.total_seconds()), 60)
    return f"{minutes:02d}:{seconds:02d}"
