import re
from pathlib import Path

from tests.chaos.schedule import names_without_test, rank

FOLDER = Path(__file__).parent


def test_who_waits_longest_begins_and_who_keeps_the_machine_busy_ends() -> None:
    ids = [
        "tests/chaos/test_mutants.py::test_a_script_without_a_guard_is_noticed[x]",
        "tests/chaos/test_redis_faults.py::test_r1_redis_killed_and_restarted_five_times",
        "tests/chaos/test_leader_deaths.py::test_p4_leader_killed[default]",
        "tests/chaos/test_fleet.py::test_a_killed_consumer_takes_no_card_with_it",
    ]
    assert sorted(ids, key=rank) == ids[::-1]


def test_the_longest_tests_are_there() -> None:
    found = [
        f"{path.name}::{name}"
        for path in FOLDER.glob("test_*.py")
        for name in re.findall(r"^async def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert names_without_test(found) == []
