"""The polling configuration as an immutable, validated whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeGuard

from junhong_cmp.cards.model import CardStatus, CarrierAccount, RealNameStatus
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.errors import InvalidSnapshotError
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

MIN_INTERVAL_S: Final = 1
MAX_INTERVAL_S: Final = 30 * 24 * 3600
MAX_JITTER: Final = 0.45
DEFAULT_JITTER: Final = 0.1
MIN_QPS: Final = 0.001
MAX_QPS: Final = 1_000_000

_TYPES_BY_KIND: Final = {task_type.kind: task_type for task_type in POLLING_TASK_TYPES}
_KNOWN_FIELDS: Final = frozenset({"interval_s", "jitter", "enabled"})
_MEMO_LIMIT: Final = 10_000


class PolledCard(Protocol):
    """What decides how a card is polled: a whole card has it, and so has a row of the roster."""

    @property
    def account_id(self) -> int:
        """Its carrier account."""
        ...

    @property
    def category(self) -> str:
        """Its category; may be empty."""
        ...

    @property
    def status(self) -> CardStatus:
        """Where it is in its life."""
        ...

    @property
    def real_name_required(self) -> bool:
        """Whether its holder must be known."""
        ...

    @property
    def real_name_status(self) -> RealNameStatus:
        """Whether its holder is known."""
        ...

    @property
    def polling_enabled(self) -> bool:
        """Whether it is polled at all."""
        ...

    @property
    def orphan(self) -> bool:
        """Whether its carrier denies knowing it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingConfigRule:
    """One row of ``polling_config``: for which cards it speaks, and what it says.

    A condition of None holds for every card. A task type absent from ``intervals`` is left to the
    next matching rule; one mapped to None is not polled.
    """

    id: int
    name: str
    priority: int
    account_id: int | None = None
    category: str | None = None
    card_status: str | None = None
    real_name_status: str | None = None
    intervals: Mapping[TaskType, PollRule | None] = field(default_factory=dict)

    def matches(self, card: PolledCard) -> bool:
        """Tell whether the rule speaks for the card."""
        return (
            self.account_id in (None, card.account_id)
            and self.category in (None, card.category)
            and self.card_status in (None, card.status)
            and self.real_name_status in (None, card.real_name_status)
        )


@dataclass(frozen=True, slots=True)
class PollingConfigSnapshot:
    """One version of the configuration: the enabled rules by priority, and every account by id.

    ``unusable`` says of an account why it is not called although the configuration is valid.
    """

    version: int
    rules: Sequence[PollingConfigRule]
    accounts: Mapping[int, CarrierAccount]
    type_pauses: Mapping[tuple[int, TaskType], datetime] = field(default_factory=dict)
    unusable: Mapping[int, str] = field(default_factory=dict)
    _memo: dict[tuple[Any, ...], PollRule | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def callable_types(self, account_id: int, now: datetime) -> tuple[TaskType, ...]:
        """Return the task types the account may be called for at ``now``."""
        account = self.accounts.get(account_id)
        if account is None or not account.polling_enabled or account.is_paused(now):
            return ()
        if account_id in self.unusable:
            return ()
        if not self.type_pauses:
            return POLLING_TASK_TYPES
        return tuple(
            task_type
            for task_type in POLLING_TASK_TYPES
            if (until := self.type_pauses.get((account_id, task_type))) is None or until <= now
        )

    def rule_for(self, card: PolledCard, task_type: TaskType) -> PollRule | None:
        """Return how the card is polled for the task type, or None when it isn't.

        The first rule by priority that matches the card and names the task type decides.
        """
        key = (task_type, card.account_id, card.category, card.status, card.real_name_status)
        try:
            return self._memo[key]
        except KeyError:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            found = self._memo[key] = self._decide(card, task_type)
            return found

    def deciding_rule(self, card: PolledCard, task_type: TaskType) -> PollingConfigRule | None:
        """Return the rule whose word counts, be it to poll or not to; None when no rule says anything."""
        for rule in self.rules:
            if task_type in rule.intervals and rule.matches(card):
                return rule
        return None

    def _decide(self, card: PolledCard, task_type: TaskType) -> PollRule | None:
        rule = self.deciding_rule(card, task_type)
        return None if rule is None else rule.intervals[task_type]


def build_snapshot(
    version: int,
    rows: Sequence[Mapping[str, Any]],
    accounts: Sequence[CarrierAccount],
    type_pauses: Mapping[tuple[int, TaskType], datetime] | None = None,
) -> PollingConfigSnapshot:
    """Build a snapshot from rows of ``polling_config``, all accounts and the pauses of their task types.

    An account whose time zone nobody knows is no fault of the configuration as a whole: the others
    are polled on, and it alone is not, for its readings could not be put into billing cycles.

    Raises:
        InvalidSnapshotError: naming every fault of every row; nothing of such a version is used.

    """
    problems: list[str] = []
    rules = [_read_row(row, problems) for row in rows if row["enabled"]]
    for account in accounts:
        _check_account(account, problems)
    if problems:
        raise InvalidSnapshotError(problems)
    rules.sort(key=lambda rule: (rule.priority, rule.id))
    return PollingConfigSnapshot(
        version,
        tuple(rules),
        {account.id: account for account in accounts},
        type_pauses or {},
        {account.id: f"未知时区 {account.tz!r}" for account in accounts if find_zone(account.tz) is None},
    )


def _check_account(account: CarrierAccount, problems: list[str]) -> None:
    if not MIN_QPS <= account.qps <= MAX_QPS:  # refuses NaN as well
        problems.append(f"账号 {account.code} 的 qps 必须在 {MIN_QPS} 到 {MAX_QPS} 之间")
    if account.concurrency <= 0:
        problems.append(f"账号 {account.code} 的 concurrency 必须大于 0")


def _read_row(row: Mapping[str, Any], problems: list[str]) -> PollingConfigRule:
    where = f"规则 {row['id']}（{row['name']}）"
    intervals: dict[TaskType, PollRule | None] = {}
    raw = row["intervals"]
    if not isinstance(raw, Mapping):
        problems.append(f"{where} 的 intervals 必须是对象，且不含过大的数或过深的嵌套")
        raw = {}
    for kind, value in raw.items():
        task_type = _TYPES_BY_KIND.get(kind)
        if task_type is None:
            problems.append(f"{where} 的任务类型 {kind!r} 未知，可用：{'、'.join(_TYPES_BY_KIND)}")
        elif not isinstance(value, Mapping):
            problems.append(f"{where} 的 {kind} 必须是对象")
        else:
            intervals[task_type] = _read_interval(f"{where} 的 {kind}", value, problems)
    return PollingConfigRule(
        id=row["id"],
        name=row["name"],
        priority=row["priority"],
        account_id=row["account_id"],
        category=row["category"],
        card_status=row["card_status"],
        real_name_status=row["real_name_status"],
        intervals=intervals,
    )


def _read_interval(where: str, value: Mapping[str, Any], problems: list[str]) -> PollRule | None:
    unknown = sorted(str(name) for name in set(value) - _KNOWN_FIELDS)
    if unknown:
        problems.append(f"{where} 含未知字段 {'、'.join(unknown)}")
    enabled = value.get("enabled", True)
    if not isinstance(enabled, bool):
        problems.append(f"{where}.enabled 必须是布尔值")
    if enabled is False:
        return None
    interval_s, jitter = value.get("interval_s"), value.get("jitter", DEFAULT_JITTER)
    if not _is_number(interval_s) or not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
        problems.append(f"{where}.interval_s 必须在 {MIN_INTERVAL_S} 到 {MAX_INTERVAL_S} 之间")
        return None
    if not _is_number(jitter) or not 0 <= jitter <= MAX_JITTER:
        problems.append(f"{where}.jitter 必须在 0 到 {MAX_JITTER} 之间")
        return None
    return PollRule(timedelta(seconds=interval_s), float(jitter))


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
