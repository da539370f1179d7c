"""A pytest plugin that takes one guard out of a script, as a careless change would.

``JUNHONG_TEST_MUTANT`` names the mutant. Only the text handed to Redis differs; no file is touched.
"""

import os
from dataclasses import dataclass
from typing import Final

from hypothesis import Phase, settings

from junhong_cmp.asynq.scripting import LuaScript

POLLING: Final = "junhong_cmp.polling"
LEADERSHIP: Final = "junhong_cmp.leadership"
CLAIM_TESTS: Final = (
    "tests/polling/test_scripts.py",
    "tests/chaos/test_guards.py",
    "tests/polling/test_claims_model.py",
)
"""In the order they run in: what takes long is not asked about a mutant that something else has noticed."""
SLOT_TESTS: Final = ("tests/polling/test_concurrency.py",)
LOAD_TESTS: Final = ("tests/polling/test_account_load.py",)
LEASE_TESTS: Final = ("tests/leadership/test_lease_store.py",)


@dataclass(frozen=True)
class Mutant:
    """A mutant is one script with some of its text replaced, and the tests that have to notice."""

    script: str
    replaced: tuple[tuple[str, str], ...]
    package: str = POLLING
    tests: tuple[str, ...] = CLAIM_TESTS

    def source_of(self, source: str) -> str:
        """Return the script without its guard; a guard that is not found is an error."""
        for guard, rest in self.replaced:
            assert guard in source, f"{self.script}.lua has no guard {guard!r}"
            source = source.replace(guard, rest)
        return source


_OWNED: Final = "if score and tonumber(score) == tonumber(ARGV[i + 1]) then"
_ANYBODYS: Final = "if score then"
_MISSING_TOO: Final = "if not score or tonumber(score) == tonumber(ARGV[i + 1]) then"
_FENCED: Final = ("if fence ~= ARGV[1] then", "if false then")
_HELD: Final = "if holder ~= '' and holder ~= ARGV[1] and expires > now and state ~= ARGV[6] then"
_IN_FLIGHT: Final = "redis.call('ZSCORE', KEYS[1], ARGV[i]) or (has_riders and"
_FOREIGN: Final = "if lease[1] ~= ARGV[1] or lease[2] ~= ARGV[2] then"

MUTANTS: Final = {
    "claim-without-fence": Mutant("claim", (_FENCED,)),
    "claim-obeys-lower-fence-only": Mutant(
        "claim", (("if fence ~= ARGV[1] then", "if tonumber(fence or 0) < tonumber(ARGV[1]) then"),)
    ),
    "claim-without-growth": Mutant("claim", ((", highest + 1))", ", 0))"),)),
    "claim-not-remembered": Mutant("claim", (("redis.call('SET', KEYS[3], claim)", "local _ = claim"),)),
    "claim-over-lost-data": Mutant("claim", (("if highest < tonumber(ARGV[4]) then", "if false then"),)),
    "seal-lowers-the-fence": Mutant(
        "seal", (("if is_epoch and tonumber(fence) > tonumber(ARGV[1]) then", "if false then"),)
    ),
    "notices-without-fence": Mutant("take_notices", (_FENCED,)),
    "start-without-claim-compare": Mutant("start", ((_OWNED, _ANYBODYS),)),
    "start-without-xx": Mutant("start", ((_OWNED, _MISSING_TOO), ("'XX', ", ""))),
    "start-without-growth": Mutant("start", ((" + 1)\nlocal text", " * 0)\nlocal text"),)),
    "start-not-remembered": Mutant("start", (("redis.call('SET', KEYS[2], text)", "local _ = text"),)),
    "write-back-without-claim-compare": Mutant("write_back", ((_OWNED, _ANYBODYS),)),
    "write-back-without-xx": Mutant("write_back", ((_OWNED, _MISSING_TOO), ("'XX', ", ""))),
    "remove-without-claim-compare": Mutant(
        "remove",
        (("if score and (ARGV[i + 1] == '' or tonumber(score) == tonumber(ARGV[i + 1])) then", _ANYBODYS),),
    ),
    "hasten-breaks-claims": Mutant("hasten", (("and score > highest ", ""),)),
    "hasten-without-xx": Mutant(
        "hasten",
        (
            ("if score and score > highest and score > due then", "if not score or score > due then"),
            ("'XX', ", ""),
        ),
    ),
    "card-in-flight-twice": Mutant("admit", ((_IN_FLIGHT, "(has_riders and"),), tests=SLOT_TESTS),
    "admitted-by-the-configured-rate": Mutant(
        "admit",
        (("granted_rate(KEYS[4], tonumber(ARGV[2]), now_us)", "tonumber(ARGV[2])"),),
        tests=LOAD_TESTS,
    ),
    "lowered-by-each-refusal": Mutant(
        "ease", (("if passed >= 0 and passed < tonumber(ARGV[2]) then", "if false then"),), tests=LOAD_TESTS
    ),
    "slot-of-another-released": Mutant(
        "release",
        (("if lease and tonumber(lease) == tonumber(ARGV[i + 1]) then", "if lease then"),),
        tests=SLOT_TESTS,
    ),
    "lease-taken-from-a-living": Mutant("acquire", ((_HELD, "if false then"),), LEADERSHIP, LEASE_TESTS),
    "lease-never-taken-from-a-dead": Mutant(
        "acquire", ((" and state ~= ARGV[6] then", " then"),), LEADERSHIP, LEASE_TESTS
    ),
    "epoch-without-growth": Mutant(
        "acquire",
        (("text(math.max(whole(lease[2]) + 1, whole(ARGV[7]) + 1, now))", "text(now)"),),
        LEADERSHIP,
        LEASE_TESTS,
    ),
    "lease-of-another-renewed": Mutant("renew", ((_FOREIGN, "if false then"),), LEADERSHIP, LEASE_TESTS),
    "lease-of-another-released": Mutant("release", ((_FOREIGN, "if false then"),), LEADERSHIP, LEASE_TESTS),
}
"""One guard a mutant. Where the comparison and XX guard the same thing, both go: either alone suffices."""


def pytest_configure() -> None:
    mutant = MUTANTS.get(os.environ.get("JUNHONG_TEST_MUTANT", ""))
    if mutant is not None:
        _infect(mutant)
        # That something fails is all there is to know; a search for the shortest failure takes minutes.
        settings.register_profile("mutant", phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutant")


def _infect(mutant: Mutant) -> None:
    load = LuaScript.load

    def infected(package: str, *names: str) -> LuaScript:
        script = load(package, *names)
        if names[-1] != mutant.script or package != mutant.package:
            return script
        return LuaScript(mutant.source_of(script.source))

    LuaScript.load = staticmethod(infected)  # type: ignore[method-assign]  # that is the point
