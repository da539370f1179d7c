"""``junhong migrate`` on a real server."""

from tests.worker_process import WorkerProcess

REDIS = {"JUNHONG_REDIS_URL": "redis://127.0.0.1:1/0"}  # not needed and never asked


async def test_a_migrated_database_has_nothing_to_do(postgres_dsn: str) -> None:
    env = {**REDIS, "JUNHONG_POSTGRES_DSN": postgres_dsn}
    async with WorkerProcess(env, arguments=("migrate",)) as command:
        assert await command.wait_exit() == 0
    assert "已是所需版本" in command.output


async def test_an_absent_server_is_69(postgres_dsn: str) -> None:
    env = {**REDIS, "JUNHONG_POSTGRES_DSN": "postgresql://u:dsn-canary@127.0.0.1:1/db"}
    async with WorkerProcess(env, arguments=("migrate",)) as command:
        assert await command.wait_exit() == 69
    assert "错误：" in command.log_text
    assert "canary" not in command.log_text
