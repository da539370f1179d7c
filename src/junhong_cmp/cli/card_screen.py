"""One card on a terminal."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier
from junhong_cmp.cards.model import Card, PollTopic
from junhong_cmp.cards.volumes import rough_volume, volume_text
from junhong_cmp.cli.inspection import moment
from junhong_cmp.cli.tables import open_console
from junhong_cmp.exports.dossier import Dossier, Entries
from junhong_cmp.exports.labels import REAL_NAME_NAMES, STATUS_NAMES, STOP_REASON_NAMES, name_of

_TOPICS: Final = {PollTopic.CARDDATA: "流量", PollTopic.CARDSTATUS: "卡状态", PollTopic.REALNAME: "实名"}
_KINDS: Final = {"stop": "停机", "resume": "复机", "network_on": "开网", "network_off": "断网"}
_STATES: Final = {"pending": "待发送", "sent": "已发送", "done": "完成", "failed": "失败", "unknown": "未知"}
_REASONS: Final = {**STOP_REASON_NAMES, "cycle_rollover": "新周期恢复", "limit_raised": "限额提高后恢复"}
_ANOMALIES: Final = {"rollback": "读数回退", "jump": "读数突增", "unit": "单位可疑"}


def print_dossier(dossier: Dossier) -> None:
    """Print all there is about a card, a section a kind."""
    console = open_console()
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(dossier):
        facts.add_row(name, escape(value or "-"))
    console.print(facts)
    _print_polls(console, dossier.card)
    _print_usage(console, dossier)
    _section(
        console,
        "操作",
        ("时间", "操作", "原因", "状态", "发送于", "核实于", "次数", "发起", "错误"),
        [
            (
                moment(one["requested_at"]),
                name_of(_KINDS, one["kind"]),
                name_of(_REASONS, one["reason"]),
                name_of(_STATES, one["status"]),
                moment(one["sent_at"]),
                moment(one["verified_at"]),
                str(one["attempts"]),
                one["requested_by"],
                one["error"] or "",
            )
            for one in dossier.operations
        ],
    )
    _section(console, "状态历史", ("时间", "原状态", "新状态", "运营商原码"), _history(dossier.history))


def _facts(dossier: Dossier) -> Iterable[tuple[str, str | None]]:
    card = dossier.card
    stopped = name_of(STOP_REASON_NAMES, card.stop_reason)
    status = name_of(STATUS_NAMES, card.status) + (f"（{stopped}）" if stopped else "")
    marks = ["启用" if card.polling_enabled else "停用", *(["运营商处查无此卡"] if card.orphan else [])]
    yield "ICCID", card.iccid
    yield "接入号", card.msisdn
    yield "IMSI / IMEI", f"{card.imsi or '-'} / {card.imei or '-'}"
    yield (
        "账号",
        f"{dossier.account_code} {dossier.account_name}（{CARRIER_NAMES[Carrier(dossier.carrier)]}）",
    )
    yield "批次 / 套餐 / 流量池", f"{card.batch_no or '-'} / {card.plan or '-'} / {dossier.pool_name or '-'}"
    yield (
        "状态",
        f"{status}，运营商原码 {card.carrier_status_raw or '-'}，变更于 {moment(card.status_changed_at)}",
    )
    yield "实名", name_of(REAL_NAME_NAMES, card.real_name_status)
    yield "轮询", "，".join(marks)
    yield "激活 / 到期", f"{moment(card.activated_at)} / {moment(card.expires_at)}"
    threshold = f"卡的阈值 {volume_text(card.threshold_kb)}"
    yield "本周期用量", f"{rough_volume(card.cycle_used_kb)}（周期 {card.cycle or '-'}，{threshold}）"
    reading = "-" if card.last_reading_kb is None else rough_volume(card.last_reading_kb)
    yield "最近读数", f"{reading}，读数时间 {moment(card.last_reading_at)}"
    yield "入库于", moment(dossier.created_at)


def _print_polls(console: Console, card: Card) -> None:
    rows = [
        (
            _TOPICS[topic],
            _age(card.progress(topic).attempted_at),
            _age(card.progress(topic).succeeded_at),
            str(card.progress(topic).fail_count),
        )
        for topic in PollTopic
    ]
    _section(console, "轮询", ("类型", "最近一次", "最近成功", "连续失败"), rows)


def _print_usage(console: Console, dossier: Dossier) -> None:
    days = [(str(one["day"]), rough_volume(one["used_kb"])) for one in dossier.days]
    _section(console, "按日用量", ("日期", "用量"), days)
    cycles = [
        (one["cycle"], rough_volume(one["used_kb"]), "已结束" if one["closed"] else "进行中")
        for one in dossier.cycles
    ]
    _section(console, "按周期用量", ("周期", "用量", "状态"), cycles)
    anomalies = [
        (
            moment(one["reading_at"]),
            name_of(_ANOMALIES, one["kind"]),
            _exact(one["expected_kb"]),
            _exact(one["reading_kb"]),
        )
        for one in dossier.anomalies
    ]
    _section(console, "用量异常", ("读数时间", "类型", "应不小于", "读数"), anomalies)


def _history(entries: Entries) -> list[tuple[str, ...]]:
    return [
        (
            moment(one["observed_at"]),
            name_of(STATUS_NAMES, one["old_status"]),
            name_of(STATUS_NAMES, one["new_status"]),
            f"{one['old_raw'] or '-'} → {one['new_raw'] or '-'}",
        )
        for one in entries
    ]


def _section(console: Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under its title; a kind of which there is nothing takes one line."""
    if not rows:
        console.print(f"\n{title}：无")
        return
    table = Table(*heads, title=title, title_justify="left")
    for cells in rows:
        table.add_row(*map(escape, cells))
    console.print()
    console.print(table)


def _age(instant: datetime | None) -> str:
    return "从未" if instant is None else moment(instant)


def _exact(kilobytes: int) -> str:
    """Return a volume with its very figure: of two that differ little the rough ones look alike."""
    rough = rough_volume(kilobytes)
    return rough if rough.endswith("KB") else f"{rough}（{kilobytes:,} KB）"
