"""What ``junhong import`` shows: the bar while it runs, the summary when it ends."""

from typing import Self

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from junhong_cmp.imports.model import ImportStatus, ImportTask


class ProgressView:
    """A progress view draws the bar on a terminal's error stream, and nothing elsewhere."""

    def __init__(self, lines: int, *, hidden: bool) -> None:
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
        self._lines = max(lines, 1)
        self._bar: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        self._bar = self._progress.add_task("等待 Worker", total=self._lines, counts="")
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, task: ImportTask) -> None:
        """Draw where ``task`` is."""
        if self._bar is None:
            return
        done = self._lines if task.status is ImportStatus.DONE else min(task.next_line, self._lines)
        waiting = task.status is ImportStatus.PENDING
        counts = f"导入 {task.imported} · 跳过 {task.skipped} · 拒绝 {task.rejected}"
        self._progress.update(
            self._bar, completed=done, description="等待 Worker" if waiting else "导入中", counts=counts
        )


def report(task: ImportTask, result_place: str | None, *, as_json: bool) -> None:
    """Print what became of the import."""
    if as_json:
        fields = ("id", "status", "total", "imported", "skipped", "rejected", "warned", "error")
        summary = {name: getattr(task, name) for name in fields} | {"result": result_place}
        typer.echo(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
        return
    console = Console(highlight=False, soft_wrap=True)
    name = escape(task.file_name)
    match task.status:
        case ImportStatus.DONE:
            console.print(f"[green]导入完成[/]：{name}（导入编号 {task.id}）")
        case ImportStatus.FAILED:
            console.print(f"[red]导入失败[/]：{name}（导入编号 {task.id}）：{escape(task.error or '')}")
        case _:
            console.print(f"已提交：{name}（导入编号 {task.id}），由 Worker 在后台导入")
            return
    console.print(
        f"共 {task.total} 行：导入 {task.imported}，跳过 {task.skipped}，"
        f"拒绝 {task.rejected}，有提醒 {task.warned}"
    )
    if result_place is not None:
        console.print(f"结果文件：{escape(result_place)}")
