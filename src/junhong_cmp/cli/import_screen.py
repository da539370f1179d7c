"""What ``junhong import`` shows: how far it is while it runs, the summary when it ends."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Self

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from junhong_cmp.cli.import_progress import Pace, PaceMeter
from junhong_cmp.cli.inspection import moment
from junhong_cmp.cli.tables import open_console
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.storage.store import Storage

_LINE_EVERY: Final = timedelta(seconds=5)
STATUS_NAMES: Final = {
    ImportStatus.PENDING: "等待 Worker",
    ImportStatus.RUNNING: "导入中",
    ImportStatus.DONE: "完成",
    ImportStatus.FAILED: "失败",
    ImportStatus.CANCELLED: "已取消",
}
_SHOWN: Final = ("id", "status", "total", "imported", "skipped", "rejected", "warned", "error", "waits_for")
_WAITS: Final = "暂停"


class ProgressView:
    """A progress view draws a bar on a terminal's error stream; elsewhere lines, if they are wanted."""

    def __init__(self, lines: int | None, *, hidden: bool, lines_too: bool = False) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            console=console,
            disable=hidden or not console.is_terminal,
        )
        self._meter = PaceMeter(lines)
        self._bar: TaskID | None = None
        self._prints_lines = lines_too and not hidden and not console.is_terminal
        self._next_line_at = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        self._bar = self._progress.add_task(
            STATUS_NAMES[ImportStatus.PENDING], total=self._meter.lines, counts=""
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, task: ImportTask) -> None:
        """Draw where ``task`` is."""
        if self._bar is None:
            return
        now = time.monotonic()
        pace = self._meter.observe(task, now)
        counts = f"导入 {task.imported} · 跳过 {task.skipped} · 拒绝 {task.rejected}{_pace_text(pace)}"
        lines = max(self._meter.lines or task.next_line, 1)
        done = lines if task.status is ImportStatus.DONE else min(task.next_line, lines)
        self._progress.update(
            self._bar, completed=done, total=lines, description=status_name(task), counts=counts
        )
        if self._prints_lines and now >= self._next_line_at:
            typer.echo(f"{status_name(task)}：{done * 100 // lines}% · {counts}", err=True)
            self._next_line_at = now + _LINE_EVERY.total_seconds()


def status_name(task: ImportTask) -> str:
    """Return how people call the status of ``task``; one that waits for something makes no progress."""
    return STATUS_NAMES[task.status] if task.waits_for is None else _WAITS


def summary_of(task: ImportTask) -> dict[str, Any]:
    """Return what programs are told of an import."""
    return {name: getattr(task, name) for name in (*_SHOWN, "file_name", "sheet", "notes", "next_line")}


def report(task: ImportTask, storage: Storage | None, *, as_json: bool) -> None:
    """Print what became of the import, and where its result file is, as far as the storage is known."""
    key = task.result_key
    place = None if storage is None or key is None else storage.locate(key)
    if as_json:
        summary = summary_of(task) | {"result": place, "result_key": key}
        typer.echo(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
        return
    console = Console(highlight=False, soft_wrap=True)
    name = escape(task.file_name)
    match task.status:
        case ImportStatus.DONE:
            console.print(f"[green]导入完成[/]：{name}（导入编号 {task.id}）")
        case ImportStatus.FAILED:
            console.print(f"[red]导入失败[/]：{name}（导入编号 {task.id}）：{escape(task.error or '')}")
        case ImportStatus.CANCELLED:
            console.print(f"[red]导入已取消[/]：{name}（导入编号 {task.id}）；已导入的卡保留")
        case _:
            console.print(f"已提交：{name}（导入编号 {task.id}），由 Worker 在后台导入")
            return
    console.print(
        f"共 {task.total} 行：导入 {task.imported}，跳过 {task.skipped}，"
        f"拒绝 {task.rejected}，有提醒 {task.warned}"
    )
    for note in task.notes:
        console.print(f"提醒：{escape(note)}")
    if place is not None:
        console.print(f"结果文件：{escape(place)}")
    elif key is not None:
        console.print(
            f"结果文件在对象存储中，键为 {escape(key)}；设置与 Worker 相同的 JUNHONG_STORAGE_URL 后，"
            f"junhong import watch {task.id} 显示其位置，加 --result 文件 另存一份"
        )
    elif task.awaits_result:
        console.print(f"结果文件尚待 Worker 写出；之后 junhong import watch {task.id} 可取")


def print_imports(imports: Sequence[ImportTask]) -> None:
    """Print one row an import."""
    table = Table("编号", "状态", "文件", "行", "导入", "跳过", "拒绝", "提醒", "提交于", "结束于", "原因")
    for task in imports:
        counts = (task.total, task.imported, task.skipped, task.rejected, task.warned)
        name = f"{task.file_name}（{task.sheet}）" if task.sheet else task.file_name
        cells = (
            str(task.id),
            status_name(task),
            name,
            *map(str, counts),
            moment(task.created_at),
            moment(task.finished_at),
            task.error or task.waits_for or "",
        )
        table.add_row(*map(escape, cells))
    open_console().print(table)


def _pace_text(pace: Pace) -> str:
    text = "" if pace.rows_per_s is None else f" · {pace.rows_per_s:,.0f} 行/秒"
    return (
        text if pace.left is None else f"{text} · 约剩 {timedelta(seconds=round(pace.left.total_seconds()))}"
    )
