"""``junhong config`` shows what is in force, where it came from, and no secret."""

from pathlib import Path

import orjson
from tests.worker_process import WorkerProcess

ENV = {
    "JUNHONG_REDIS_URL": "redis://:redis-canary@h:6379/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@h/db",
    "JUNHONG_GATEWAY_KEY_ID": "k",
    "JUNHONG_GATEWAY_SECRET": "gateway-canary",
    "JUNHONG_WORKER_ROEL": "leader",
    "COLUMNS": "400",
}


async def test_json(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("JUNHONG_QUEUE_CONCURRENCY=7\n", encoding="utf-8")
    async with WorkerProcess(ENV, arguments=("config", "--json"), cwd=tmp_path) as command:
        assert await command.wait_exit() == 0
    report = orjson.loads(command.output)
    settings = {item["variable"]: item for item in report["settings"]}
    assert settings["JUNHONG_QUEUE_CONCURRENCY"]["value"] == "7"
    assert settings["JUNHONG_QUEUE_CONCURRENCY"]["origin"] == ".env 文件"
    assert settings["JUNHONG_REDIS_URL"]["value"] == "redis://:***@h:6379/0"
    assert settings["JUNHONG_GATEWAY_SECRET"]["value"] == "***"
    assert "JUNHONG_WORKER_ROLE" in report["warnings"][0]
    assert "canary" not in command.output + command.log_text


async def test_table(tmp_path: Path) -> None:
    async with WorkerProcess(ENV, arguments=("config",), cwd=tmp_path) as command:
        assert await command.wait_exit() == 0
    assert "JUNHONG_WORKER_ROLE" in command.output
    assert "默认值" in command.output
    assert "注意" in command.log_text
    assert "canary" not in command.output + command.log_text


async def test_nothing_is_cut_off_in_a_narrow_terminal(tmp_path: Path) -> None:
    dsn = "postgresql://u@h/db?host=" + "/long" * 20
    env = {**ENV, "JUNHONG_POSTGRES_DSN": dsn, "COLUMNS": "80"}
    async with WorkerProcess(env, arguments=("config",), cwd=tmp_path) as command:
        assert await command.wait_exit() == 0
    cells = [line.split("│")[2].strip() for line in command.output.splitlines() if line.count("│") == 5]
    assert dsn in "".join(cells)


async def test_a_pipe_gets_a_line_a_variable_with_its_value_as_it_is(tmp_path: Path) -> None:
    env = {name: value for name, value in ENV.items() if name != "COLUMNS"}
    value = "file:///var/lib/junhong" + "/long" * 30 + "/[red]/[/x]"
    async with WorkerProcess(
        {**env, "JUNHONG_STORAGE_URL": value}, arguments=("config",), cwd=tmp_path
    ) as command:
        assert await command.wait_exit() == 0, command.log_text
    rows = [line for line in command.output.splitlines() if "JUNHONG_" in line]
    assert len(rows) == len({line.split()[1] for line in rows}) > 30
    assert any("JUNHONG_STORAGE_URL" in row and value in row for row in rows)


async def test_a_wrong_configuration_is_told_in_plain_words(tmp_path: Path) -> None:
    async with WorkerProcess({"JUNHONG_LOG_LEVEL": "loud"}, arguments=("config",), cwd=tmp_path) as command:
        assert await command.wait_exit() == 78
    assert "错误：配置错误：" in command.log_text
    assert command.log_text.count("\n  - ") == 3
