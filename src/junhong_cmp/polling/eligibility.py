"""Whether a card is to be polled at all, and by which rule: asked by everybody in the same words."""

from datetime import timedelta
from typing import Final

from junhong_cmp.cards.model import Card, PollTopic, RealNameStatus
from junhong_cmp.polling.config import PolledCard, PollingConfigSnapshot
from junhong_cmp.polling.due import FirstDue, PollRule
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import TaskType

VERIFIED_RECHECK: Final = timedelta(days=7)
"""A verified real name is asked about again this seldom: carriers can clear it."""

ORPHAN_INTERVAL: Final = timedelta(days=1)
"""A card its carrier does not know any more is asked about this seldom."""


def poll_rule(card: PolledCard, task_type: TaskType, snapshot: PollingConfigSnapshot) -> PollRule | None:
    """Return the rule a live card is polled by, or None when it is not to wait in a shard."""
    if not card.polling_enabled or card.account_id not in snapshot.accounts:
        return None
    if task_type is TaskType.POLLING_REALNAME and not card.real_name_required:
        return None
    rule = snapshot.rule_for(card, task_type)
    if rule is None:
        return None
    slowest = rule.interval
    if task_type is TaskType.POLLING_REALNAME and card.real_name_status is RealNameStatus.VERIFIED:
        slowest = max(slowest, VERIFIED_RECHECK)
    if card.orphan:
        slowest = max(slowest, ORPHAN_INTERVAL)
    return rule if slowest == rule.interval else PollRule(slowest, rule.jitter)


def first_due_of(
    card: Card, task_type: TaskType, rule: PollRule, now_ms: int, settings: PollingSettings
) -> int:
    """Return when a card is due that no shard knows, from what PostgreSQL knows of its polls."""
    first = FirstDue(task_type, rule, settings.max_backoff)
    progress = card.progress(PollTopic(task_type.kind))
    times = [at for at in (progress.attempted_at, progress.succeeded_at) if at is not None]
    last_ms = int(max(times).timestamp() * 1000) if times else None
    return first.of(card.id, now_ms, last_ms, progress.fail_count)
