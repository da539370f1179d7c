"""``junhong migrate`` on a real server."""

from tests.worker_process import WorkerProcess

from junhong_cmp.db.pool import Pool

REDIS = {"JUNHONG_REDIS_URL": "redis://127.0.0.1:1/0"}  # not needed and never asked


async def test_a_migrated_database_has_nothing_to_do(postgres_dsn: str) -> None:
    env = {**REDIS, "JUNHONG_POSTGRES_DSN": postgres_dsn}
    async with WorkerProcess(env, arguments=("migrate",)) as command:
        assert await command.wait_exit() == 0
    assert "已是所需版本" in command.output


async def test_an_empty_database_is_brought_up_in_one_line(postgres_dsn: str, pool: Pool) -> None:
    await pool.execute("DROP SCHEMA public CASCADE")
    await pool.execute("CREATE SCHEMA public")
    env = {**REDIS, "JUNHONG_POSTGRES_DSN": postgres_dsn, "JUNHONG_UNKNOWN": "x"}
    async with WorkerProcess(env, arguments=("migrate",)) as command:
        assert await command.wait_exit() == 0
    assert command.output.startswith("数据库结构已更新：空库 → ")
    assert command.output.count("\n") == 1
    assert "JUNHONG_UNKNOWN" in command.log_text


async def test_an_absent_server_is_69(postgres_dsn: str) -> None:
    env = {**REDIS, "JUNHONG_POSTGRES_DSN": "postgresql://u:dsn-canary@127.0.0.1:1/db"}
    async with WorkerProcess(env, arguments=("migrate",)) as command:
        assert await command.wait_exit() == 69
    assert "错误：" in command.log_text
    assert "canary" not in command.log_text
