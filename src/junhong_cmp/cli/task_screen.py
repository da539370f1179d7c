"""Tasks as tables for a terminal."""

from collections.abc import Iterable
from datetime import timedelta

from rich.markup import escape
from rich.table import Table

from junhong_cmp.asynq.inspector_types import TaskDetails
from junhong_cmp.cli.inspection import STATE_NAMES, moment, text_of
from junhong_cmp.cli.tables import open_console, open_table

_SHOWN_CHARACTERS = 60


def print_tasks(tasks: Iterable[TaskDetails]) -> None:
    """Print one row a task."""
    table = open_table("编号", "类型", "载荷", "重试", "下次执行", "最近错误", "备注")
    for task in tasks:
        cells = (
            task.id,
            task.type,
            _short(text_of(task.payload)),
            f"{task.retried}/{task.max_retry}",
            moment(task.next_process_at),
            _short(task.last_error),
            _note(task),
        )
        table.add_row(*(escape(cell) for cell in cells))
    open_console().print(table)


def print_task(task: TaskDetails) -> None:
    """Print all that is known about one task, a line a field."""
    rows = {
        "编号": task.id,
        "队列": task.queue,
        "类型": task.type,
        "状态": STATE_NAMES[task.state],
        "载荷": text_of(task.payload),
        "消息头": "，".join(f"{name}={value}" for name, value in sorted(task.headers.items())),
        "已重试/上限": f"{task.retried}/{task.max_retry}",
        "超时": _length(task.timeout),
        "截止": moment(task.deadline),
        "分组": task.group,
        "保留时长": _length(task.retention),
        "等待自": moment(task.pending_since),
        "下次执行": moment(task.next_process_at),
        "最近失败": moment(task.last_failed_at),
        "最近错误": task.last_error,
        "完成于": moment(task.completed_at),
        "结果": text_of(task.result),
        "备注": _note(task),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        table.add_row(name, escape(value or "-"))
    open_console().print(table)


def _note(task: TaskDetails) -> str:
    if task.quarantined:
        return f"已隔离：{task.quarantined}"
    return "执行者已失联" if task.orphaned else ""


def _length(duration: timedelta) -> str:
    return str(duration) if duration else "-"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
