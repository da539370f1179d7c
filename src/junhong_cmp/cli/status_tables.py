"""The status report as tables for a terminal."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from rich.markup import escape
from rich.table import Table

from junhong_cmp.cli.held_claims import held_text
from junhong_cmp.cli.import_screen import STATUS_NAMES
from junhong_cmp.cli.status_report import Status
from junhong_cmp.cli.tables import open_console
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.leadership.lease import LeadershipView

UNNAMED: Final = "未命名"
_SERVER_STATES: Final = {"new": "启动中", "active": "运行中", "stopped": "停止取任务", "closed": "已退出"}


def print_status(status: Status) -> None:
    """Print the report; texts that came from outside are shown as they are, never as markup."""
    console = open_console()
    for table in _tables(status):
        for column in table.columns:
            column.overflow = "fold"  # wrapped, never cut off
        console.print(table if table.row_count else f"{table.title}：无")
    minute = status.last_minute
    lag = "无" if minute.lag_p95_ms is None else f"{minute.lag_p95_ms} ms"
    console.print(
        f"自 {minute.since.astimezone():%H:%M} 起的轮询：完成 {minute.done}，失败 {minute.failed}，"
        f"限流 {minute.throttled}，作废 {minute.superseded}，p95 延迟 {lag}",
    )
    if status.claims_held is not None:
        console.print(held_text(status.claims_held))


def _tables(status: Status) -> Iterator[Table]:
    yield _leadership(status.leadership)
    yield _instances(status)
    yield _queues(status)
    shards = Table("账号", "任务类型", "卡数", "到期", "逾期", title="轮询分片")
    for row in status.shards:
        _add(shards, row.account, row.task_type, row.cards, row.due, row.overdue)
    yield shards
    rates = Table("账号", "所设速率/s", "实际速率/s", "在途", title="账号速率")
    for rate in status.rates:
        _add(rates, rate.account, f"{rate.qps:g}", f"{rate.granted_qps:g}", rate.in_flight)
    yield rates
    imports = Table("编号", "账号", "文件", "状态", "行数", "导入", "跳过", "拒绝", title="最近的导入")
    for task in status.imports:
        names = ("id", "account", "file_name", "status", "total", "imported", "skipped", "rejected")
        status_name = STATUS_NAMES[ImportStatus(str(task["status"]))]
        shown = {**task, "status": status_name if task["waits_for"] is None else "暂停"}
        _add(imports, *(shown[name] for name in names))
    yield imports


def _instances(status: Status) -> Table:
    titles = ("角色", "实例名称", "主机", "进程", "版本", "状态", "并发", "在途", "队列", "启动时间")
    table = Table(*titles, title="实例")
    for item in status.instances:
        name = item.name or (UNNAMED if item.role else "—")  # one that is not ours has no role either
        place = (item.role or "—", name, item.host, item.pid, item.version or "—")
        work = (_SERVER_STATES.get(item.status, item.status), item.concurrency, item.active)
        _add(table, *place, *work, _weights(item.queues), _local(item.started_at))
    return table


def _queues(status: Status) -> Table:
    table = Table("队列", "待处理", "处理中", "定时", "重试", "归档", "完成", "最久等待", title="任务队列")
    for queue in status.queues:
        name = f"{queue.queue}（已暂停）" if queue.paused else queue.queue
        counts = (queue.pending, queue.active, queue.scheduled, queue.retry, queue.archived, queue.completed)
        _add(table, name, *counts, f"{queue.latency.total_seconds():.1f} s")
    return table


def _leadership(view: LeadershipView) -> Table:
    table = Table("状态", "实例名称", "主机", "进程", "自", "任期", title="主节点与热备")
    lease = view.lease
    if lease.alive:
        _add(table, "主", lease.name or UNNAMED, lease.host, lease.pid, _local(lease.led_since), lease.epoch)
    for standby in view.standbys:
        since = _local(standby.waits_since)
        _add(table, "热备", standby.name or UNNAMED, standby.host, standby.pid, since, "—")
    return table


def _local(at: datetime) -> str:
    return f"{at.astimezone():%m-%d %H:%M:%S}"


def _add(table: Table, *cells: object) -> None:
    table.add_row(*(escape(str(cell)) for cell in cells))


def _weights(queues: Mapping[str, int]) -> str:
    return ",".join(f"{name}={weight}" for name, weight in sorted(queues.items()))
