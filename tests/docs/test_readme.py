"""The README's commands run exactly as written."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from tests.scenarios.platform import Platform
from tests.waiting import wait_until
from tests.worker_process import environment
from typer.core import TyperGroup
from typer.main import get_command

from junhong_cmp.cards.account_store import find_account
from junhong_cmp.cli import app as cli
from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.config.settings import Settings
from junhong_cmp.config.variables import derive_variables
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh-CN.md")


def commands_of(name: str) -> list[str]:
    """Every line of the bash blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


COMMANDS = commands_of("README.md")
EXPORTS = [line for line in COMMANDS if line.startswith("export ")]
WORKERS = [line for line in COMMANDS if line.endswith(" junhong worker")]
FIRST = [line for line in COMMANDS if line.startswith(("junhong account ", "junhong polling "))]
TRIED_HERE = {
    "make run",
    "make test",
    "make setup",
    ".venv/bin/junhong up --for 20s --json",
    "junhong migrate",
}


@asynccontextmanager
async def shell(line: str, env: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a line as an interactive shell would: in a process group of its own."""
    path = f"{ROOT / '.venv' / 'bin'}:{env['PATH']}"
    process = await asyncio.create_subprocess_shell(
        line,
        cwd=ROOT,
        env={**env, "PATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def read_until(process: asyncio.subprocess.Process, text: str, limit_s: float = 60) -> str:
    assert process.stdout is not None
    seen = ""
    async with asyncio.timeout(limit_s):
        while text not in seen:
            line = (await process.stdout.readline()).decode()
            assert line, f"ended without {text!r}:\n{seen}"
            seen += line
    return seen


def test_both_languages_show_the_same_commands() -> None:
    assert commands_of("README.zh-CN.md") == COMMANDS


def test_both_languages_name_the_same_things() -> None:
    english, chinese = (
        set(re.findall(r"`[^`\n]+`", (ROOT / name).read_text(encoding="utf-8"))) for name in READMES
    )
    assert english == chinese


@pytest.mark.parametrize("name", READMES)
def test_the_table_lists_the_commands_there_are(name: str) -> None:
    listed = re.findall(r"^\| `junhong ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert list(dict.fromkeys(listed)) == list(cli.COMMANDS)  # a command may have several rows


@pytest.mark.parametrize("name", READMES)
def test_the_table_lists_the_parts_of_each_group(name: str) -> None:
    rows = re.findall(
        r"^\| `junhong ([a-z-]+) ([a-z|\\]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {group: set(parts.replace("\\", "").split("|")) for group, parts in rows}
    app = get_command(cli.build_app([], StopSignals()))
    assert isinstance(app, TyperGroup)
    groups = {name: set(each.commands) for name, each in app.commands.items() if isinstance(each, TyperGroup)}
    groups["import"].remove("file")  # goes unnamed, and has a row of its own
    assert listed == groups


@pytest.mark.parametrize("name", READMES)
def test_every_page_is_found_from_here(name: str) -> None:
    linked = set(re.findall(r"\]\(((?:docs|src)/[^)#]+?)/?\)", (ROOT / name).read_text(encoding="utf-8")))
    for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("README.md")]:
        path = page.relative_to(ROOT)
        alone = path.parent.name not in {"adr", "carriers"}  # these are listed by their folder
        assert str(path if alone else path.parent) in linked
    assert all((ROOT / path).exists() for path in linked)


def test_every_command_is_tried_here() -> None:
    assert set(COMMANDS) == TRIED_HERE | set(EXPORTS) | set(WORKERS) | set(FIRST)


def test_the_readme_opens_with_its_two_commands() -> None:
    assert COMMANDS[:2] == ["make run", "make test"]


async def test_make_run_polls_until_ctrl_c_and_leaves_nothing_behind(data_folder: Path) -> None:
    env = environment(JUNHONG_DATA_DIR=str(data_folder / "data"))
    async with shell("make run", env) as run:
        seen = await read_until(run, "滞后 p95")
        redis, postgres = (re.findall(rf"{name}：(\S+)（", seen)[0] for name in ("Redis", "PostgreSQL"))
        services = environment(JUNHONG_REDIS_URL=redis, JUNHONG_POSTGRES_DSN=postgres)
        async with shell(".venv/bin/junhong status --json", services) as status:
            said, _ = await status.communicate()
        assert json.loads(said)["leadership"]["leader"]["name"] == "demo"
        os.killpg(run.pid, signal.SIGINT)
        assert run.stdout is not None
        rest = (await run.stdout.read()).decode()
        await run.wait()
    assert "失败 0" in rest
    await wait_until(lambda: not working_in(data_folder), description="nothing of the run is left")


def test_make_test_is_this_suite() -> None:
    plan = subprocess.run(
        ["make", "--no-print-directory", "-n", "test"],  # noqa: S607 - as written
        cwd=ROOT,
        env={
            name: value for name, value in os.environ.items() if not name.startswith("MAKE")
        },  # make runs us
        capture_output=True,
        text=True,
        check=True,
    )
    command = plan.stdout.splitlines()[-1]
    assert re.fullmatch(r"\S+/python -m pytest -n \d --dist loadfile", command), "every test, none deselected"


def test_make_setup_makes_the_program() -> None:
    subprocess.run(["make", "setup"], cwd=ROOT, check=True, capture_output=True)  # noqa: S607 - as written
    assert (ROOT / ".venv" / "bin" / "junhong").exists()


async def test_the_bounded_run_prints_its_summary(data_folder: Path) -> None:
    env = environment(JUNHONG_DATA_DIR=str(data_folder / "data"))
    async with shell(".venv/bin/junhong up --for 20s --json 2>/dev/null", env) as run:
        assert run.stdout is not None
        summary = json.loads(await run.stdout.read())
        assert await run.wait() == 0
    assert summary["polled"] > 0
    assert summary["failed"] == 0
    assert not working_in(data_folder)


@pytest.mark.parametrize("line", EXPORTS)
def test_exported_variables_exist(line: str) -> None:
    name = line.removeprefix("export ").partition("=")[0]
    known = derive_variables(Settings).values()
    assert name in {variable.name for variable in known} | {item.file_name for item in known if item.secret}


async def test_the_deployment_starts_as_written(platform: Platform) -> None:
    env = environment(JUNHONG_LOG_FORMAT="json", **platform.environment())
    async with shell("junhong migrate", env) as migrate:
        assert await migrate.wait() == 0
    assert len(WORKERS) >= 3
    for line in WORKERS:
        role, name = re.findall(r"JUNHONG_WORKER_(?:ROLE|INSTANCE_NAME)=(\S+)", line)
        async with shell(line, env) as worker:
            seen = await read_until(worker, "Worker 启动")
            assert f"Worker 角色={role}，实例名称={name}" in seen
            for child in psutil.Process(worker.pid).children():  # the shell would die of the signal itself
                child.terminate()
            assert await worker.wait() == 0


def working_in(folder: Path) -> list[str]:
    """Processes whose arguments or environment name the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            known = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.status() != psutil.STATUS_ZOMBIE and any(str(folder) in text for text in known):
            found.append(f"{process.pid} {known[:3]}")
    return found


async def test_the_first_commands_make_a_polled_account(
    pool: Pool, redis_url: str, postgres_dsn: str
) -> None:
    assert [line.split()[1] for line in FIRST] == ["account", "polling"]
    env = environment(JUNHONG_REDIS_URL=redis_url, JUNHONG_POSTGRES_DSN=postgres_dsn)
    for line in FIRST:
        async with shell(line, env) as command:
            said, _ = await command.communicate()
            assert command.returncode == 0, said.decode()
    async with pool.acquire() as conn:
        account = await find_account(conn, "cmcc-01")
    assert account is not None
    assert (account.name, account.carrier, account.qps) == ("移动一号", "cmcc", 50)
    manager = PollingConfigManager(pool, postgres_dsn)
    await manager.start()
    try:
        assert [rule.name for rule in manager.snapshot.rules] == ["default"]
        assert all(manager.snapshot.rules[0].intervals.get(kind) for kind in POLLING_TASK_TYPES)
        assert account.id in manager.snapshot.accounts
    finally:
        await manager.stop()


def test_clean_takes_a_cluster_that_lies_elsewhere_along(tmp_path: Path) -> None:
    cluster = tmp_path / "elsewhere" / "cluster"
    cluster.mkdir(parents=True)
    (tmp_path / ".junhong").mkdir()
    (tmp_path / ".junhong" / "postgres").symlink_to(cluster)
    subprocess.run(["make", "-f", str(ROOT / "Makefile"), "clean"], cwd=tmp_path, check=True)  # noqa: S607 - as written
    assert not cluster.exists()
    assert not (tmp_path / ".junhong").exists()
