"""What to do about runs of a cron entry nobody was there to make: a pure decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

ON_TIME: Final = timedelta(seconds=15)
"""A run not later than this was not missed: it covers a slow tick and a change of leader."""


class MisfirePolicy(StrEnum):
    """SKIP: never make up. FIRE_ONCE: one run stands for all missed. FIRE_ALL: make up each."""

    SKIP = "跳过"
    FIRE_ONCE = "补一次"
    FIRE_ALL = "全部补"


@dataclass(frozen=True, slots=True)
class Step:
    """One write: the run of ``instant`` is enqueued, or only noted as settled; ``missed`` gets reported."""

    instant: int
    fire: bool
    missed: tuple[int, ...]


def plan(due: Sequence[int], now: float, policy: MisfirePolicy, grace: timedelta) -> list[Step]:
    """Return the steps for the runs ``due`` (unix seconds, oldest first, none after ``now``).

    Runs older than ``grace`` are never made up. Steps go forward in time, so a crash between two leaves the
    rest due.
    """
    if not due:
        return []
    latest = due[-1]
    on_time = now - latest <= ON_TIME.total_seconds()
    missed = tuple(due[:-1] if on_time else due)
    oldest_made_up = now - grace.total_seconds()
    if policy is MisfirePolicy.FIRE_ALL:
        too_old = tuple(instant for instant in missed if instant < oldest_made_up)
        steps = [Step(too_old[-1], fire=False, missed=too_old)] if too_old else []
        steps += [Step(instant, fire=True, missed=(instant,)) for instant in missed[len(too_old) :]]
        return [*steps, Step(latest, fire=True, missed=())] if on_time else steps
    make_up = policy is MisfirePolicy.FIRE_ONCE and latest >= oldest_made_up
    return [Step(latest, fire=on_time or make_up, missed=missed)]
