"""Warnings about a lasting condition, said seldom however often it is met."""

import time
from datetime import timedelta
from typing import Any

import structlog

log = structlog.stdlib.get_logger(__name__)


class RareLog:
    """A rare log repeats a sentence only after a while, with the number of times it held back."""

    def __init__(self, repeat: timedelta = timedelta(seconds=30)) -> None:
        self._repeat = repeat.total_seconds()
        self._told: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def warning(self, sentence: str, **fields: Any) -> None:
        """Warn, unless the same sentence was said a short while ago."""
        now = time.monotonic()
        told = self._told.get(sentence)
        if told is not None and now - told < self._repeat:
            self._held[sentence] = self._held.get(sentence, 0) + 1
            return
        self._told[sentence] = now
        log.warning(sentence, **fields, held_back=self._held.pop(sentence, 0))
