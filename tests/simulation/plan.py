"""What happens in a simulated day: which accounts there are, what cards do, when carriers fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from itertools import cycle, islice

from junhong_cmp.cards.carrier import Carrier

CHINA = timezone(timedelta(hours=8))
MIDNIGHT = timedelta(days=1)


class Habit(StrEnum):
    """What a card's counter does besides counting; each card has one habit."""

    PLAIN = "plain"
    DIP = "dip"  # shows half for a while, then what it should
    FLAP = "flap"  # shows nothing now and then
    RESET = "reset"  # begins again at nothing in the middle of a cycle
    STALE = "stale"  # goes on showing the old cycle's total after the cycle's start, fixed
    LATE = "late"  # the same, and still counting
    RELAPSE = "relapse"  # shows the new cycle's total and the old one's in turn after the start
    LOW = "low"  # shows nothing for a while after the cycle's start
    UNIT = "unit"  # shows bytes for KB, as it were, for a while
    JUMP = "jump"  # shows more than anybody can transfer, for a while


HELD_OVER = frozenset({Habit.STALE, Habit.LATE, Habit.RELAPSE})
"""Habits that show the old cycle's total after its end."""
LIES = frozenset({Habit.UNIT, Habit.JUMP})
"""Habits that show what was never counted."""


class Failure(StrEnum):
    """How a carrier is out of order."""

    STORM = "storm"  # answers 500, or a proxy does 502
    HANG = "hang"  # does not answer until the caller has given up
    BUSY = "busy"  # says "too fast"


@dataclass(frozen=True)
class Window:
    """A stretch of simulated time."""

    begin: datetime
    end: datetime

    def __contains__(self, at: datetime) -> bool:
        return self.begin <= at < self.end


@dataclass(frozen=True)
class Outage(Window):
    """A stretch of time in which an account's carrier fails."""

    account: str
    failure: Failure


@dataclass(frozen=True)
class AccountPlan:
    """An account and how many cards it has."""

    code: str
    driver: str
    carrier: Carrier
    prefix: str
    batch_size: int = 1
    billing_day: int = 1


@dataclass(frozen=True)
class Plan:
    """A plan of a stretch of simulated time.

    Attributes:
        factor: simulated seconds in a real one.
        guard: how long before and after each midnight of China carriers give no answers. No call should take
            longer in real time: what it says would count for another day than the carrier gave it on.
        call_limit: real time after which a caller gives up; what it is told then nobody writes down.
        noise: how long counters are stale or low after a cycle's start.
        beat: how long a counter that wavers shows the one thing, then the other.
        habits: when cards of a habit show it; one instant for ``RESET``.
        restart: when the worker is killed and another one started, if at all.

    """

    begin: datetime
    end: datetime
    factor: float
    accounts: Sequence[AccountPlan]
    cards_per_account: int
    guard: timedelta
    noise: timedelta
    beat: timedelta
    habits: Mapping[Habit, Sequence[Window]]
    intervals_s: Mapping[str, float]
    call_limit: timedelta
    outages: Sequence[Outage] = ()
    restart: datetime | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def failure(self, account: str, at: datetime) -> Failure | None:
        """Return how an account's carrier fails at an instant, if it does."""
        since_midnight = at.astimezone(CHINA) - _midnight(at)
        if since_midnight < self.guard or since_midnight >= MIDNIGHT - self.guard:
            return Failure.BUSY
        found = [outage for outage in self.outages if outage.account == account and at in outage]
        return found[0].failure if found else None

    @property
    def healed(self) -> datetime:
        """The instant from which on nothing is out of order any more."""
        return max([_midnight(self.end) + self.guard, *(outage.end for outage in self.outages)])

    def habits_of_cards(self) -> list[Habit]:
        """Return a habit for each card of an account, every habit about as often."""
        return list(islice(cycle(Habit), self.cards_per_account))


def _midnight(at: datetime) -> datetime:
    return at.astimezone(CHINA).replace(hour=0, minute=0, second=0, microsecond=0)


GENERIC = AccountPlan("generic", "generic", Carrier.OTHER, "8986040")
UNICOM = AccountPlan("unicom", "unicom", Carrier.CUCC, "8986061", batch_size=50, billing_day=27)
TELECOM = AccountPlan("ctcc", "ctcc", Carrier.CTCC, "8986113")
ONELINK = AccountPlan("onelink", "onelink", Carrier.CMCC, "8986002")
ONELINK_BATCHES = AccountPlan("onelink-batches", "onelink", Carrier.CMCC, "8986007", batch_size=100)


def days(cards_per_account: int) -> Plan:
    """Two days and a bit at 600 times the speed: over Unicom's change of cycle, and over everybody else's.

    February has 28 days, so the 27th and the first of March are two midnights apart.
    """
    return Plan(
        begin=_at(26, 22, 30),
        end=_at(29, 4, 0),
        factor=600,
        accounts=(GENERIC, UNICOM, TELECOM, ONELINK, ONELINK_BATCHES),
        cards_per_account=cards_per_account,
        guard=timedelta(minutes=30),
        noise=timedelta(hours=2),
        beat=timedelta(minutes=50),
        habits={
            Habit.DIP: [Window(_at(27, 9), _at(27, 12)), Window(_at(28, 15), _at(28, 17))],
            Habit.FLAP: [Window(_at(27, 6), _at(28, 20))],
            Habit.RESET: [Window(_at(27, 14), _at(29, 24))],
            Habit.UNIT: [Window(_at(28, 9), _at(28, 10, 30))],
            Habit.JUMP: [Window(_at(27, 20), _at(27, 22)), Window(_at(28, 18), _at(28, 20))],
        },
        intervals_s={"carddata": 6, "cardstatus": 24, "realname": 72},
        call_limit=timedelta(seconds=2.5),
        outages=(
            Outage(_at(27, 3), _at(27, 4), "generic", Failure.STORM),
            Outage(_at(27, 7), _at(27, 8), "unicom", Failure.STORM),
            Outage(_at(27, 12), _at(27, 12, 40), "ctcc", Failure.HANG),
            Outage(_at(27, 16), _at(27, 18), "onelink", Failure.BUSY),
            Outage(_at(27, 18), _at(27, 18, 40), "generic", Failure.HANG),
            Outage(_at(28, 2), _at(28, 3), "onelink-batches", Failure.STORM),
            Outage(_at(28, 4), _at(28, 6), "ctcc", Failure.BUSY),
            Outage(_at(28, 6), _at(28, 6, 40), "onelink", Failure.HANG),
            Outage(_at(28, 12), _at(28, 13), "ctcc", Failure.STORM),
            Outage(_at(28, 14), _at(28, 16), "unicom", Failure.BUSY),
        ),
        restart=_at(28, 11, 0),
        environment={"JUNHONG_POLLING_MAX_BACKOFF": "36s"},
    )


def minutes() -> Plan:
    """Four minutes around a month's end, at twenty times the speed."""
    return Plan(
        begin=_at(28, 23, 58, 20),
        end=_at(29, 0, 2, 20),
        factor=20,
        accounts=(GENERIC, UNICOM, TELECOM, ONELINK),
        cards_per_account=18,
        guard=timedelta(seconds=40),
        noise=timedelta(seconds=80),
        beat=timedelta(seconds=25),
        habits={
            Habit.DIP: [Window(_at(28, 23, 58, 30), _at(28, 23, 59))],
            Habit.FLAP: [Window(_at(28, 23, 58), _at(28, 23, 59, 20))],
            Habit.RESET: [Window(_at(28, 23, 58, 50), _at(29, 24))],
            Habit.UNIT: [Window(_at(28, 23, 58, 30), _at(28, 23, 59))],
            Habit.JUMP: [Window(_at(28, 23, 58, 30), _at(28, 23, 59))],
        },
        intervals_s={"carddata": 1, "cardstatus": 3, "realname": 6},
        call_limit=timedelta(seconds=8),
        environment={"JUNHONG_POLLING_MAX_BACKOFF": "2s"},
    )


def _at(day: int, hour: int, minute: int = 0, second: int = 0) -> datetime:
    """Return an instant of February 2026 in China; the 29th is the first of March."""
    midnight = datetime(2026, 2, 1, tzinfo=CHINA) + timedelta(days=day - 1)
    return midnight + timedelta(hours=hour, minutes=minute, seconds=second)
