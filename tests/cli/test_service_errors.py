"""Whatever is wrong with a service or its address, a command says it in one sentence."""

from pathlib import Path

import asyncpg
import pytest
from redis.exceptions import AuthenticationError, RedisClusterException, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import BulkEnqueueError
from junhong_cmp.asynq.connection import RedisUrlError
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.errors import ExitCode, JunhongError

ABSENT = {
    "JUNHONG_REDIS_URL": "redis://:redis-canary@127.0.0.1:1/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@127.0.0.1:1/db",
}
COMMANDS = (("status",), ("migrate",), ("import", "cards.csv", "--account", "demo"))


@pytest.mark.parametrize(
    ("error", "code", "named"),
    [
        (RedisUrlError("缺少主节点名"), ExitCode.CONFIGURATION, "JUNHONG_REDIS_URL"),
        (AuthenticationError("invalid password"), ExitCode.CONFIGURATION, "Redis 拒绝登录"),
        (ResponseError("NOAUTH Authentication required."), ExitCode.CONFIGURATION, "Redis 拒绝登录"),
        (asyncpg.InvalidPasswordError("no"), ExitCode.CONFIGURATION, "PostgreSQL 拒绝登录"),
        (asyncpg.exceptions.ClientConfigurationError("no"), ExitCode.CONFIGURATION, "连接串无效"),
        (RedisConnectionError("refused"), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_REDIS_URL"),
        (RedisClusterException("no node"), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_REDIS_URL"),
        (ConnectionRefusedError("refused"), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_POSTGRES_DSN"),
        (asyncpg.InterfaceError("closed"), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_POSTGRES_DSN"),
        (asyncpg.InsufficientPrivilegeError("no"), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_POSTGRES_DSN"),
        (
            BulkEnqueueError([RedisConnectionError("cut")]),
            ExitCode.DEPENDENCY_UNAVAILABLE,
            "JUNHONG_REDIS_URL",
        ),
        (TimeoutError(), ExitCode.DEPENDENCY_UNAVAILABLE, "JUNHONG_REDIS_URL、JUNHONG_POSTGRES_DSN"),
    ],
)
def test_each_error_has_its_sentence_and_exit_code(error: Exception, code: ExitCode, named: str) -> None:
    with pytest.raises(JunhongError, match=named) as caught, explained("无法读取状态"):
        raise error
    assert caught.value.exit_code is code


def test_a_secret_in_the_text_of_an_error_is_masked() -> None:
    with pytest.raises(JunhongError) as caught, explained("无法读取状态"):
        raise OSError("postgresql://u:pg-canary@h/db")
    assert "canary" not in str(caught.value)


def test_a_fault_of_the_program_is_not_blamed_on_a_service() -> None:
    with pytest.raises(ZeroDivisionError), explained("无法读取状态"):
        raise ZeroDivisionError


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"JUNHONG_REDIS_URL": "redis-sentinel://:redis-canary@127.0.0.1:1/0"}, {78, 69}),
        ({"JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@/db?host=no&port=x"}, {78}),
        ({}, {69}),
    ],
    ids=["redis address", "postgres address", "nothing there"],
)
async def test_no_command_ends_in_a_traceback(
    arguments: tuple[str, ...], wrong: dict[str, str], code: set[int], tmp_path: Path
) -> None:
    (tmp_path / "cards.csv").write_text("ICCID\n89860425000000079190\n", encoding="utf-8")
    env = {**ABSENT, **wrong, "JUNHONG_STORAGE_URL": f"file://{tmp_path}/files"}
    async with WorkerProcess(env, arguments=arguments, cwd=tmp_path) as command:
        assert await command.wait_exit() in code, command.log_text
    assert command.log_text.startswith("错误：")
    assert "Traceback" not in command.log_text
    assert "canary" not in command.log_text + command.output
