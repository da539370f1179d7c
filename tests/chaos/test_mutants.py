"""The tests of the polling scripts bite: with any one guard removed from a script, some test fails."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.chaos.mutant import MUTANTS, Mutant
from tests.worker_process import ROOT, environment

from junhong_cmp.asynq.scripting import LuaScript

TESTS = ("tests/polling/test_scripts.py", "tests/polling/test_claims_model.py", "tests/chaos/test_guards.py")


async def run_tests(mutant: str, cache: Path) -> tuple[int, str]:
    arguments = ("-q", "-x", "--tb=line", "-p", "tests.chaos.mutant", "-o", f"cache_dir={cache}", *TESTS)
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
    code, output = await run_tests(mutant, tmp_path)
    assert code == pytest.ExitCode.TESTS_FAILED, output


@pytest.mark.chaos
async def test_the_scripts_as_they_are_pass(tmp_path: Path) -> None:
    code, output = await run_tests("none", tmp_path)
    assert code == 0, output


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_every_guard_is_there_to_be_removed(mutant: Mutant) -> None:
    source = LuaScript.load("junhong_cmp.polling", mutant.script).source
    assert mutant.source_of(source) != source
