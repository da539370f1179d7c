"""The budgets of calls an account has for its carrier's day and month: when they begin and end. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.usage import billing_cycle, cycle_start
from junhong_cmp.polling.server_clock import ServerClock

_INTO_NEXT_MONTH = timedelta(days=31, hours=12)
"""From the start of any billing cycle, of 28 to 31 days, this leads into the next one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget allows ``limit`` calls (None: any number) from ``start_ms`` until before ``end_ms``."""

    name: str
    limit: int | None
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of an account that hold at one instant."""

    day: Budget
    month: Budget


def budgets_at(account: CarrierAccount, at: datetime) -> Budgets | None:
    """Return the budgets that hold at ``at``; None when the account may call as often as it likes.

    The day is the account's local one, the month its billing cycle: both as the carrier counts them.
    """
    if account.daily_quota is None and account.monthly_quota is None:
        return None
    tz = ZoneInfo(account.tz)
    today = at.astimezone(tz).date()
    cycle = billing_cycle(at, account.billing_day, tz)
    first = cycle_start(cycle, tz)
    following = cycle_start(billing_cycle(first + _INTO_NEXT_MONTH, account.billing_day, tz), tz)
    return Budgets(
        Budget(
            f"day:{today.isoformat()}",
            account.daily_quota,
            _ms(_midnight(today, tz)),
            _ms(_midnight(today + timedelta(days=1), tz)),
        ),
        Budget(f"month:{cycle}", account.monthly_quota, _ms(first), _ms(following)),
    )


def _midnight(day: date, tz: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tz)


def _ms(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp() * 1000)


class BudgetBook:
    """A budget book knows each account's budgets by Redis time.

    Before Redis ever told its time, this machine's clock makes the first guess. A wrong guess does no harm:
    the script that counts compares each budget with its own time and has the book corrected.
    """

    def __init__(self) -> None:
        self._clock = ServerClock()
        self._known: dict[int, tuple[CarrierAccount, Budgets | None]] = {}

    def of(self, account: CarrierAccount) -> Budgets | None:
        """Return the account's budgets, None when it has none."""
        known = self._known.get(account.id)
        if known is None or known[0] is not account:  # another object is another reading of its row
            at = datetime.fromtimestamp(self._now_ms() / 1000, UTC)
            known = self._known[account.id] = (account, budgets_at(account, at))
        return known[1]

    def note(self, now_ms: int) -> None:
        """Take over the time Redis has just told."""
        self._clock.note(now_ms)

    def correct(self, account_id: int, now_ms: int) -> None:
        """Forget an account's budgets: their time is over, or has not come."""
        self._clock.note(now_ms)
        self._known.pop(account_id, None)

    def rest(self, budget: Budget) -> timedelta:
        """Return how long it takes until the budget is renewed."""
        return timedelta(milliseconds=max(0, budget.end_ms - self._now_ms()))

    def _now_ms(self) -> int:
        told = self._clock.now_ms()
        return _ms(datetime.now(UTC)) if told is None else told
