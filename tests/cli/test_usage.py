"""``--help`` is Chinese, complete and no wider than the terminal, whatever the command."""

import re

import pytest
from rich.cells import cell_len
from typer.main import get_command

from junhong_cmp.cli.app import COMMANDS, build_app, run
from junhong_cmp.cli.signals import StopSignals

ENGLISH = re.compile(r"Usage|Options|Commands|Arguments|default|required|env var|Show this|int range")


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_everything_within_the_width(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    arguments = [command] if command else []
    assert run(StopSignals(), [*arguments, "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("用法：junhong")
    assert not ENGLISH.search(page)
    assert all(cell_len(line) <= columns for line in page.splitlines()[3:]), page
    shown = re.sub(r"\s", "", page)
    for text in texts(arguments):
        assert re.sub(r"\s", "", text) in shown


def texts(arguments: list[str]) -> list[str]:
    app = get_command(build_app(arguments, StopSignals()))
    found = getattr(app, "commands", {})
    if not arguments:
        return [command.help or "" for command in found.values()]
    return [getattr(item, "help", "") or "" for item in found[arguments[0]].params]


def test_notes_tell_what_a_value_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(StopSignals(), ["simulate-gateway", "--help"]) == 0
    page = re.sub(r"\s", "", capsys.readouterr().out)
    assert "（0到65535；默认0）" in page
    assert "（默认demo；环境变量JUNHONG_GATEWAY_KEY_ID）" in page
    assert run(StopSignals(), ["import", "--help"]) == 0
    page = capsys.readouterr().out
    assert "用法：junhong import [选项] FILE" in page
    assert "--account, -a CODE" in page
    assert "（必填）" in page
    assert "默认 ）" not in page, "an empty default is none"
    assert all(f"  {name} " in page for name in ("watch", "cancel", "ls"))


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(StopSignals(), []) == 2
    page = capsys.readouterr().err
    assert all(name in page for name in COMMANDS)
