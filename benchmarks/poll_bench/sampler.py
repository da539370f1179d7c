"""Where a process spends its CPU time, by samples: a signal each two milliseconds of CPU used."""

import atexit
import json
import signal
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

BEGIN: Final = signal.SIGUSR2
"""Tells the process that its start is over and its work under way."""

_EVERY_S: Final = 0.002
_PARTS: Final = (
    ("junhong_cmp/gateway/exchanges.py", "http"),
    ("junhong_cmp/gateway/", "gateway"),
    ("junhong_cmp/cards/", "database"),
    ("junhong_cmp/db/", "database"),
    ("junhong_cmp/asynq/", "queue"),
    ("junhong_cmp/polling/", "turn"),
    ("/aiohttp/", "http"),
    ("/yarl/", "http"),
    ("/multidict/", "http"),
    ("/asyncpg/", "database"),
    ("/redis/", "redis"),
    ("/structlog/", "log"),
)
"""Files by a part of their path; of a stack the innermost frame that belongs to one decides."""


class Sampler:
    """A sampler counts on which part of the program, and in which function, each sample fell."""

    def __init__(self) -> None:
        self._parts: Counter[str] = Counter()
        self._functions: Counter[str] = Counter()

    def start(self, report: Path) -> None:
        """Sample from the signal ``BEGIN`` on, and write the counts when the process ends."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(BEGIN, lambda *_: signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S))
        atexit.register(self._report, report)

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            self._functions[f"{code.co_filename.rpartition('site-packages/')[2]}:{code.co_name}"] += 1
        while frame is not None:
            name = frame.f_code.co_filename
            for part, label in _PARTS:
                if part in name:
                    self._parts[label] += 1
                    return
            frame = frame.f_back
        self._parts["loop"] += 1

    def _report(self, path: Path) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts = {"parts": self._parts, "functions": dict(self._functions.most_common(60))}
        path.write_text(json.dumps(counts), encoding="utf-8")
