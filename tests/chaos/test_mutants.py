"""The tests of the polling scripts bite: with any one guard removed from a script, some test fails."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.chaos.mutant import CLAIM_TESTS, LEASE_TESTS, MUTANTS, SLOT_TESTS, Mutant
from tests.worker_process import ROOT, environment

from junhong_cmp.asynq.scripting import LuaScript


async def run_tests(mutant: str, tests: Sequence[str], cache: Path) -> tuple[int, str]:
    plugins = ("-p", "no:randomly", "-p", "tests.chaos.mutant")
    arguments = ("-q", "-x", "--tb=line", *plugins, "-o", f"cache_dir={cache}", *tests)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pytest",
        *arguments,
        cwd=ROOT,
        env=environment(
            JUNHONG_TEST_MUTANT=mutant,
            HYPOTHESIS_STORAGE_DIRECTORY=str(cache),
            PYTHONPATH=f"{ROOT}:{ROOT}/src",
        ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")


@pytest.mark.chaos
@pytest.mark.parametrize("mutant", MUTANTS)
async def test_a_script_without_a_guard_is_noticed(mutant: str, tmp_path: Path) -> None:
    code, output = await run_tests(mutant, MUTANTS[mutant].tests, tmp_path)
    assert code == pytest.ExitCode.TESTS_FAILED, output


@pytest.mark.chaos
async def test_the_scripts_as_they_are_pass(tmp_path: Path) -> None:
    code, output = await run_tests("none", (*CLAIM_TESTS, *SLOT_TESTS, *LEASE_TESTS), tmp_path)
    assert code == 0, output


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_every_guard_is_there_to_be_removed(mutant: Mutant) -> None:
    source = LuaScript.load(mutant.package, mutant.script).source
    assert mutant.source_of(source) != source
