"""How many cards each polling rule speaks for, and what that asks of the accounts."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from junhong_cmp.cards.model import CardStatus, RealNameStatus
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.eligibility import poll_rule
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

# Cards that no rule can tell apart are counted together: a handful of rows, however many the cards.
_GROUPS = """
    SELECT account_id, category, status, real_name_required, real_name_status, orphan, count(*) AS cards
    FROM iot_card WHERE polling_enabled AND deleted_at IS NULL
    GROUP BY account_id, category, status, real_name_required, real_name_status, orphan
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGroup:
    """Live cards with polling enabled that are the same to every rule."""

    account_id: int
    category: str
    status: CardStatus
    real_name_required: bool
    real_name_status: RealNameStatus
    orphan: bool
    cards: int
    polling_enabled: bool = True


@dataclass(slots=True)
class RuleMatches:
    """What a rule's conditions match, and for how many of those its word counts, by task type."""

    cards: int = 0
    decides: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class AccountLoad:
    """Polls a second that the rules ask of an account, beside what it allows."""

    account: str
    required_qps: float
    allowed_qps: float

    @property
    def is_too_much(self) -> bool:
        """Whether the account cannot keep up: its cards are polled later than their rules say."""
        return self.required_qps > self.allowed_qps


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchReport:
    """Matches by rule id; cards no rule matches, and by task type those no rule says anything about."""

    cards: int
    rules: Mapping[int, RuleMatches]
    unmatched: int
    undecided: Mapping[str, int]
    loads: Sequence[AccountLoad]


async def count_matches(conn: Conn, snapshot: PollingConfigSnapshot) -> MatchReport:
    """Count by the very rules the workers go by."""
    return match_groups(await load_groups(conn), snapshot)


async def load_groups(conn: Conn) -> list[CardGroup]:
    """Return all cards that are to be polled, those together that no rule can tell apart."""
    return [_group(dict(row)) for row in await conn.fetch(_GROUPS)]


def match_groups(groups: Sequence[CardGroup], snapshot: PollingConfigSnapshot) -> MatchReport:
    """Match groups of cards with the rules of a snapshot."""
    rules = {rule.id: RuleMatches() for rule in snapshot.rules}
    unmatched, undecided = 0, dict.fromkeys((kind.kind for kind in POLLING_TASK_TYPES), 0)
    required: defaultdict[int, float] = defaultdict(float)
    for group in groups:
        matching = [rule.id for rule in snapshot.rules if rule.matches(group)]
        for rule_id in matching:
            rules[rule_id].cards += group.cards
        unmatched += 0 if matching else group.cards
        for task_type in wanted_types(group):
            deciding = snapshot.deciding_rule(group, task_type)
            if deciding is None:
                undecided[task_type.kind] += group.cards
            else:
                rules[deciding.id].decides[task_type.kind] += group.cards
            rule = poll_rule(group, task_type, snapshot)
            if rule is not None:
                required[group.account_id] += group.cards / rule.interval.total_seconds()
    loads = [
        AccountLoad(account.code, round(required[account.id], 3), account.qps)
        for account in snapshot.accounts.values()
        if account.id in required
    ]
    cards = sum(group.cards for group in groups)
    return MatchReport(cards=cards, rules=rules, unmatched=unmatched, undecided=undecided, loads=loads)


def wanted_types(group: CardGroup) -> list[TaskType]:
    """Return what such cards can be polled for, whatever the rules say."""
    return [
        task_type
        for task_type in POLLING_TASK_TYPES
        if group.real_name_required or task_type is not TaskType.POLLING_REALNAME
    ]


def _group(row: dict[str, Any]) -> CardGroup:
    row["status"] = CardStatus(row["status"])
    row["real_name_status"] = RealNameStatus(row["real_name_status"])
    return CardGroup(**row)
