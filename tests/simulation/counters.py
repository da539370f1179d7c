"""The counters of simulated cards, honest or not: what they show, and of which cycle."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from tests.simulation.plan import CHINA, HELD_OVER, Habit, Plan

from junhong_cmp.gateway.simulator_cards import CardBook, expected_usage_kb

_SEED = 7
_UNIT = 1000
_ABSURD_KB = 10**12
_TICK = timedelta(milliseconds=1)
_EARLY = HELD_OVER | {Habit.LOW}


@dataclass(frozen=True)
class Shown:
    """What a counter shows, of the cycle that begins on ``cycle``; ``habit`` is what it just did."""

    kb: int
    cycle: date
    habit: Habit = Habit.PLAIN


class CounterBook(CardBook):
    """A counter book lets each card follow its habit; it depends on nothing but card and instant."""

    def __init__(self, plan: Plan, habits: Mapping[str, Habit]) -> None:
        super().__init__(seed=_SEED, unknown_rate=0.0, operation_delay=timedelta(0), cards=tuple(habits))
        self._plan = plan
        self._habits = {_key(iccid): habit for iccid, habit in habits.items()}

    def status(self, iccid: str, now: datetime) -> str:
        """Every card is active: one that changed its state is polled by other rules."""
        del iccid, now
        return "active"

    def usage_kb(self, iccid: str, now: datetime, *, billing_day: int = 1) -> int:
        return self.shown(iccid, now, billing_day).kb

    def shown(self, iccid: str, at: datetime, billing_day: int) -> Shown:
        """Return what the card's counter shows at an instant."""
        start = _cycle_start(at, billing_day)
        honest = Shown(expected_usage_kb(iccid, at, _SEED, billing_day=billing_day), start.date())
        habit = self._habits[_key(iccid)]
        if habit in _EARLY:
            early = at - start < self._plan.noise
            wavers = habit is Habit.RELAPSE and (at - start) // self._plan.beat % 2 == 0
            return self._early(iccid, start, habit, honest) if early and not wavers else honest
        window = next((window for window in self._plan.habits.get(habit, ()) if at in window), None)
        if window is None:
            return honest
        if habit is Habit.RESET:
            return self._since_reset(iccid, window.begin, start, honest)
        if habit is Habit.FLAP and (at - window.begin) // self._plan.beat % 2 == 0:
            return honest
        wrong = {
            Habit.DIP: honest.kb // 2,
            Habit.FLAP: 0,
            Habit.UNIT: honest.kb * _UNIT,
            Habit.JUMP: honest.kb + _ABSURD_KB,
        }
        return Shown(wrong[habit], honest.cycle, habit)

    @staticmethod
    def _early(iccid: str, start: datetime, habit: Habit, honest: Shown) -> Shown:
        if habit is Habit.LOW:
            return Shown(0, honest.cycle, habit)
        billing_day, last = start.day, start - _TICK
        old_kb = expected_usage_kb(iccid, last, _SEED, billing_day=billing_day)
        late_kb = honest.kb if habit is Habit.LATE else 0
        return Shown(old_kb + late_kb, _cycle_start(last, billing_day).date(), habit)

    @staticmethod
    def _since_reset(iccid: str, reset: datetime, start: datetime, honest: Shown) -> Shown:
        if reset <= start:  # the next cycle began as it should
            return honest
        lost_kb = expected_usage_kb(iccid, reset, _SEED, billing_day=start.day)
        return Shown(honest.kb - lost_kb, honest.cycle, Habit.RESET)


def _cycle_start(at: datetime, billing_day: int) -> datetime:
    """Return the local midnight of the last billing day; no simulated one is after the 28th."""
    day = at.astimezone(CHINA).replace(hour=0, minute=0, second=0, microsecond=0)
    while day.day != billing_day:
        day -= timedelta(days=1)
    return day


def _key(iccid: str) -> str:
    return iccid[:19]
