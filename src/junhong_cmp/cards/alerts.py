"""When an alert rule speaks about a card, and what it says. Pure.

A rule's ``threshold`` is, by kind: the share of the card's own threshold, of its plan or of its pool
(0.8 = 80 %), hours without a good reading, failures in a row, or days before the card expires.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from junhong_cmp.cards.limits import NO_LIMITS, CardLimits, PoolState
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.cards.volumes import rough_volume, volume_text


class AlertKind(StrEnum):
    """What a rule watches; the values of ``alert_rule.kind``."""

    THRESHOLD = "threshold"
    PLAN_USAGE = "plan_usage"
    POOL_USAGE = "pool_usage"
    STALE_DATA = "stale_data"
    API_FAILURE = "api_failure"
    EXPIRY = "expiry"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """An enabled row of ``alert_rule``; None stands for any account or category."""

    id: int
    name: str
    kind: AlertKind
    account_id: int | None
    category: str | None
    level: str
    threshold: float


USAGE_KINDS: Final = (AlertKind.THRESHOLD, AlertKind.PLAN_USAGE, AlertKind.POOL_USAGE)
"""What only a reading can change."""


def alert_text(
    rule: AlertRule, card: Card, cycle: CycleId, now: datetime, limits: CardLimits = NO_LIMITS
) -> str | None:
    """Return what the rule says about the card in its account's current cycle, None if nothing."""
    match rule.kind:
        case AlertKind.THRESHOLD:
            return _over_limit(rule, card, cycle, card.threshold_kb, "阈值")
        case AlertKind.PLAN_USAGE:
            return _over_limit(rule, card, cycle, limits.plan_kb, "套餐")
        case AlertKind.POOL_USAGE:
            return None if limits.pool is None else pool_alert_text(rule, limits.pool, cycle)
        case AlertKind.STALE_DATA:
            return _stale(rule, card, now)
        case AlertKind.API_FAILURE:
            return _failing(rule, card)
        case AlertKind.EXPIRY:
            return _expiring(rule, card, now)


def pool_alert_text(rule: AlertRule, pool: PoolState, cycle: CycleId) -> str | None:
    """Return what the rule says about a pool, whichever of its cards is looked at."""
    if pool.cycle != cycle or not pool.capacity_kb or pool.used_kb < pool.capacity_kb * rule.threshold:
        return None
    return (
        f"流量池 {pool.name} 本周期已用 {rough_volume(pool.used_kb)}，"
        f"容量 {volume_text(pool.capacity_kb)} 的 {rule.threshold:.0%}"
    )


def _over_limit(rule: AlertRule, card: Card, cycle: CycleId, limit_kb: int | None, limit: str) -> str | None:
    if not limit_kb or card.cycle != cycle:  # a reading of an earlier cycle says nothing of this one
        return None
    if card.cycle_used_kb < limit_kb * rule.threshold:
        return None
    used, whole = rough_volume(card.cycle_used_kb), volume_text(limit_kb)
    return f"本周期已用 {used}，{limit} {whole} 的 {rule.threshold:.0%}"


def _stale(rule: AlertRule, card: Card, now: datetime) -> str | None:
    if not card.polling_enabled:
        return None
    read_at = card.carddata.succeeded_at
    if read_at is None:
        return f"建卡 {rule.threshold:g} 小时以来没有成功读到流量"
    if now - read_at < timedelta(hours=rule.threshold):
        return None
    return f"流量已有 {(now - read_at) / timedelta(hours=1):.1f} 小时没有更新"


def _failing(rule: AlertRule, card: Card) -> str | None:
    failures = max(card.carddata.fail_count, card.cardstatus.fail_count, card.realname.fail_count)
    if not card.polling_enabled or failures < max(1.0, rule.threshold):
        return None
    return f"连续 {failures} 次查询失败"


def _expiring(rule: AlertRule, card: Card, now: datetime) -> str | None:
    if card.expires_at is None or card.expires_at - now > timedelta(days=rule.threshold):
        return None
    if card.expires_at <= now:
        return f"已于 {card.expires_at:%Y-%m-%d} 到期"
    return f"将于 {card.expires_at:%Y-%m-%d} 到期，还有 {(card.expires_at - now) / timedelta(days=1):.1f} 天"
