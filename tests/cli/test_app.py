"""The command line as a whole."""

from importlib.metadata import version

import pytest
import typer
from tests.worker_process import WorkerProcess

from junhong_cmp.cli.app import COMMANDS, build_app, run
from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.errors import DependencyUnavailableError


def names(app: typer.Typer) -> list[str | None]:
    commands = [command.name for command in app.registered_commands]
    return [*commands, *(str(group.name) for group in app.registered_groups)]


def test_help_knows_every_command() -> None:
    assert names(build_app([], StopSignals())) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_brings_itself_and_no_other(command: str) -> None:
    assert names(build_app([command, "--help"], StopSignals())) == [command]


async def test_help_and_unknown_commands() -> None:
    async with WorkerProcess({}, arguments=("--help",)) as command:
        assert await command.wait_exit() == 0
    assert all(name in command.output for name in COMMANDS)
    async with WorkerProcess({}, arguments=("nonsense",)) as command:
        assert await command.wait_exit() == 2


def test_an_error_of_ours_becomes_its_sentence_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_arguments: object, _signals: object) -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)

        @app.command()
        def command() -> None:
            raise DependencyUnavailableError("Redis 不在")

        return app

    monkeypatch.setattr("junhong_cmp.cli.app.build_app", broken)
    assert run(StopSignals(), []) == 69
    assert capsys.readouterr().err == "错误：Redis 不在\n"


async def test_the_version_is_told_without_any_setting_or_service() -> None:
    async with WorkerProcess({"JUNHONG_WORKER_ROLE": "nonsense"}, arguments=("--version",)) as command:
        assert await command.wait_exit() == 0
    assert command.output == f"junhong {version('junhong-cmp')}\n"
    assert command.log_text == ""


def test_the_version_is_told_without_importing_a_command() -> None:
    assert names(build_app(["--version"], StopSignals())) == []
