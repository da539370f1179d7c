"""In which order the tests of a chaos run begin, so that it takes no longer than it must."""

from collections.abc import Sequence
from typing import Final

LONGEST: Final = (
    "test_a_killed_consumer_takes_no_card_with_it",
    "test_both_services_crash_under_the_fleet",
    "test_p3_",
    "test_p4_",
    "test_p7_",
    "test_p16_",
)
"""Tests that mostly wait, for minutes or for leases to lapse; also those whose durations are measured."""
BUSY: Final = "test_mutants.py"
"""Tests that wait for nothing but the processor."""


def rank(node_id: str) -> tuple[int, int]:
    """Return what to sort by: who waits longest begins, who keeps the machine busy ends."""
    _, _, name = node_id.rpartition("::")
    for place, prefix in enumerate(LONGEST):
        if name.startswith(prefix):
            return 0, place
    return (2 if BUSY in node_id else 1), 0


def names_without_test(node_ids: Sequence[str]) -> list[str]:
    """Return which of the longest tests there are not."""
    names = [node_id.rpartition("::")[2] for node_id in node_ids]
    return [prefix for prefix in LONGEST if not any(name.startswith(prefix) for name in names)]
