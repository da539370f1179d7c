"""Polling rules as tables for a terminal."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from junhong_cmp.cli.rule_shift_texts import KIND_NAMES, load_texts
from junhong_cmp.config.values import format_duration
from junhong_cmp.polling.config import MAX_INTERVAL_S
from junhong_cmp.polling.config_store import StoredConfig
from junhong_cmp.polling.rule_matches import MatchReport
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES


def print_rules(problems: Sequence[str], matches: MatchReport | None, stored: StoredConfig) -> None:
    """Print one row a rule, the first to match first."""
    codes = {account.id: account.code for account in stored.accounts}
    table = Table("编号", "优先级", "名称", "条件", *KIND_NAMES.values(), "匹配的卡", title="轮询规则")
    for row in stored.rows:
        found = None if matches is None else matches.rules.get(row["id"])
        name = row["name"] if row["enabled"] else f"{row['name']}（已停用）"
        intervals = row["intervals"] if isinstance(row["intervals"], Mapping) else {}
        cells = (
            f"#{row['id']}",
            row["priority"],
            name,
            _conditions(row, codes),
            *(_interval(intervals.get(kind.kind)) for kind in POLLING_TASK_TYPES),
            "-" if found is None else found.cards,
        )
        table.add_row(*(escape(str(cell)) for cell in cells))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    _print_verdict(console, problems, matches)


def print_check(problems: Sequence[str], matches: MatchReport | None, stored: StoredConfig) -> None:
    """Print what the workers make of the configuration."""
    console = Console(highlight=False, soft_wrap=True)
    if matches is not None:
        names = {row["id"]: row["name"] for row in stored.rows}
        titles = (f"决定{title}" for title in KIND_NAMES.values())
        table = Table("规则", "匹配的卡", *titles, title="规则与卡")
        for rule_id, found in matches.rules.items():
            decided = (found.decides[kind] for kind in KIND_NAMES)
            cells = (f"#{rule_id} {names[rule_id]}", found.cards, *decided)
            table.add_row(*(escape(str(cell)) for cell in cells))
        console.print(table)
    _print_verdict(console, problems, matches)


def _print_verdict(console: Console, problems: Sequence[str], matches: MatchReport | None) -> None:
    for problem in problems:
        console.print(escape(f"无效：{problem}"))
    if matches is None:
        console.print("Worker 会拒绝这份配置，继续使用上一份有效的配置")
        return
    console.print(f"配置有效；开启轮询的卡 {matches.cards} 张，没有规则匹配的 {matches.unmatched} 张")
    for kind, cards in matches.undecided.items():
        if cards:
            console.print(f"{KIND_NAMES[kind]}：{cards} 张卡没有规则决定，不轮询")
    for text in load_texts(matches.loads):
        console.print(escape(text))


def _conditions(row: Mapping[str, Any], codes: Mapping[int, str]) -> str:
    parts = [
        f"{title}={codes.get(value, value) if column == 'account_id' else value}"
        for column, title in (
            ("account_id", "账号"),
            ("category", "分类"),
            ("card_status", "状态"),
            ("real_name_status", "实名"),
        )
        if (value := row[column]) is not None
    ]
    return "，".join(parts) or "全部"


def _interval(fields: Any) -> str:
    if not isinstance(fields, Mapping):
        return "-" if fields is None else "?"
    if fields.get("enabled") is False:
        return "不轮询"
    seconds = fields.get("interval_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_INTERVAL_S:
        return "?"
    return format_duration(timedelta(seconds=seconds))
