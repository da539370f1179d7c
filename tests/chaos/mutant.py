"""A pytest plugin that takes one guard out of a polling script, as a careless change would.

``JUNHONG_TEST_MUTANT`` names the mutant. Only the text handed to Redis differs; no file is touched.
"""

import os
from dataclasses import dataclass
from typing import Final

from junhong_cmp.asynq.scripting import LuaScript


@dataclass(frozen=True)
class Mutant:
    """A mutant is one script with some of its text replaced."""

    script: str
    replaced: tuple[tuple[str, str], ...]

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

MUTANTS: Final = {
    "claim-without-fence": Mutant("claim", (_FENCED,)),
    "claim-obeys-lower-fence-only": Mutant(
        "claim", (("if fence ~= ARGV[1] then", "if tonumber(fence or 0) < tonumber(ARGV[1]) then"),)
    ),
    "claim-without-growth": Mutant("claim", ((", highest + 1))", ", 0))"),)),
    "claim-not-remembered": Mutant("claim", (("redis.call('SET', KEYS[3], claim)", "local _ = claim"),)),
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
}
"""One guard a mutant. Where the comparison and XX guard the same thing, both go: either alone suffices."""


def pytest_configure() -> None:
    mutant = MUTANTS.get(os.environ.get("JUNHONG_TEST_MUTANT", ""))
    if mutant is not None:
        _infect(mutant)


def _infect(mutant: Mutant) -> None:
    load = LuaScript.load

    def infected(package: str, *names: str) -> LuaScript:
        script = load(package, *names)
        if names != (mutant.script,) or package != "junhong_cmp.polling":
            return script
        return LuaScript(mutant.source_of(script.source))

    LuaScript.load = staticmethod(infected)  # type: ignore[method-assign]  # that is the point
