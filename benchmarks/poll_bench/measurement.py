"""Watching a process work its queue off: polls by the clock, and the CPU time each took."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

_WARM_SHARE: Final = 0.15
_LOOK_EVERY_S: Final = 0.01
_STALL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run showed; CPU is microseconds a card."""

    polls_per_s: float
    polls_per_core_s: float
    cpu_us: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Mark:
    cards: float
    at: float
    cpu_s: dict[str, float]


class Watch:
    """A watch follows how many cards are done and reads CPU time at the warm moment and at the end."""

    def __init__(self, processes: dict[str, int], done: Callable[[], float], cards: int) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._done = done
        self._cards = cards

    def measure(self, on_warm: Callable[[], None] = lambda: None) -> Measured:
        """Return what lies between the moment a part is done, when ``on_warm`` is called, and the end."""
        warm = self._mark_at(self._cards * _WARM_SHARE)
        on_warm()
        end = self._mark_at(self._cards)
        cards, seconds = end.cards - warm.cards, end.at - warm.at
        cpu_us = {
            name: round((end.cpu_s[name] - warm.cpu_s[name]) / cards * 1e6, 1) for name in self._processes
        }
        return Measured(cards / seconds, 1e6 / cpu_us["consumer"], cpu_us)

    def _mark_at(self, cards: float) -> _Mark:
        seen, moved_at = -1.0, time.monotonic()
        while (count := self._done()) < cards:
            if count != seen:
                seen, moved_at = count, time.monotonic()
            elif time.monotonic() - moved_at > _STALL_S:
                raise RuntimeError(f"no progress: {count} of {cards} cards done")
            time.sleep(_LOOK_EVERY_S)
        at = time.perf_counter()
        return _Mark(count, at, {name: _cpu_s(one) for name, one in self._processes.items()})


def stop(process: subprocess.Popen[str], limit_s: float = 15.0) -> None:
    """End a process in good order."""
    process.terminate()
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment(**settings: str) -> dict[str, str]:
    """Return this process's environment without settings of ours, with these instead."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUNHONG_")}
    return kept | settings


def _cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and its children, those that have ended included."""
    total = 0.0
    family: Sequence[psutil.Process] = (process, *process.children(recursive=True))
    for one in family:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
