"""Queues as tables for a terminal."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from junhong_cmp.asynq.inspector_check import CheckReport, Fault, Remedy
from junhong_cmp.asynq.inspector_types import DailyStats, GroupInfo, QueueInfo
from junhong_cmp.cli.tables import open_console, open_table

_FAULTS: Mapping[Fault, str] = {
    Fault.GHOST: "编号没有任务",
    Fault.MISPLACED: "编号所在与任务状态不符",
    Fault.ORPHAN: "任务不在任何列表中",
    Fault.STUB: "任务键没有消息",
    Fault.FOREIGN: "键的类型不对",
    Fault.ACTIVE_WITHOUT_LEASE: "处理中但没有租约",
    Fault.LEASE_WITHOUT_ACTIVE: "有租约但不在处理中",
    Fault.STALE_LOCK: "唯一锁的持有者已不在",
    Fault.STALE_AGGREGATION_SET: "聚合中断后的残留",
    Fault.EMPTY_GROUP: "登记的分组是空的",
    Fault.UNLISTED_GROUP: "分组未登记",
    Fault.UNLISTED_QUEUE: "队列未登记",
}
_REMEDIES: Mapping[Remedy, str] = {
    Remedy.DROPPED: "移除",
    Remedy.ADOPTED: "改正状态",
    Remedy.DELETED: "删除",
    Remedy.REQUEUED: "放回",
    Remedy.RECOVERING: "交给恢复",
    Remedy.RESTORED: "放回",
    Remedy.ARCHIVED: "归档待人工处理",
    Remedy.LEASED: "补租约",
    Remedy.LISTED: "补登记",
    Remedy.KEPT: "保留，需人工处理",
}


def print_queues(queues: Iterable[QueueInfo]) -> None:
    """Print one row a queue."""
    names = (
        "队列",
        "合计",
        "待处理",
        "处理中",
        "定时",
        "重试",
        "归档",
        "完成",
        "聚合中",
        "最久等待",
        "今日处理",
        "今日失败",
    )
    table = open_table(*names, title="任务队列")
    table.columns[0].no_wrap = True
    for queue in queues:
        name = f"{queue.queue}（已暂停）" if queue.paused else queue.queue
        counts = (queue.pending, queue.active, queue.scheduled, queue.retry, queue.archived, queue.completed)
        waited = f"{queue.latency.total_seconds():.1f} s"
        today = (queue.processed_today, queue.failed_today)
        _add(table, name, queue.size, *counts, queue.aggregating, waited, *today)
    open_console().print(table)


def print_queue(queue: QueueInfo, groups: Sequence[GroupInfo], history: Sequence[DailyStats]) -> None:
    """Print all there is about one queue."""
    print_queues([queue])
    console = open_console()
    console.print(f"累计处理 {queue.processed_total}，累计失败 {queue.failed_total}", highlight=False)
    if groups:
        table = open_table("分组", "任务数", title="聚合分组")
        for group in groups:
            _add(table, group.group, group.size)
        console.print(table)
    table = open_table("日期（UTC）", "处理", "失败", title="按日统计")
    for day in history:
        _add(table, day.day, day.processed, day.failed)
    console.print(table)


def print_checks(reports: Iterable[CheckReport]) -> None:
    """Print what checks found, and what was or would be done about it."""
    console = Console(highlight=False, soft_wrap=True)
    for report in reports:
        name = escape(report.queue)
        if not report.total:
            console.print(f"队列 {name}：没有发现不一致")
            continue
        verb = "已修复" if report.repaired else "发现（未改动）"
        console.print(f"队列 {name}：{verb} {report.total} 处不一致")
        table = Table("问题", "数量", "例子", "处理")
        for fault, count in report.counts.most_common():
            found = [finding for finding in report.examples if finding.fault is fault]
            remedies = dict.fromkeys(_REMEDIES[finding.remedy] for finding in found)
            _add(table, _FAULTS[fault], count, found[0].subject, "、".join(remedies))
        console.print(table)


def _add(table: Table, *cells: object) -> None:
    table.add_row(*(escape(str(cell)) for cell in cells))
