"""A canary in every secret setting shows in no record, at any level, in good times and bad."""

from pathlib import Path

import pytest
from tests.worker_process import WorkerProcess

CREDENTIALS = '{"acc": {"key_id": "k", "secret": "cred-canary-0123456789"}}'


@pytest.fixture
def secrets(postgres_dsn: str, redis_url: str, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "password").write_text("pg-canary", encoding="utf-8")
    return {
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_POSTGRES_PASSWORD_FILE": str(tmp_path / "password"),
        "JUNHONG_GATEWAY_URL": "https://gateway.invalid",
        "JUNHONG_GATEWAY_KEY_ID": "k",
        "JUNHONG_GATEWAY_SECRET": "gateway-canary-0123456789",
        "JUNHONG_GATEWAY_CREDENTIALS": CREDENTIALS,
        "JUNHONG_LOG_LEVEL": "debug",
    }


async def test_a_good_life_tells_none(secrets: dict[str, str]) -> None:
    async with WorkerProcess(secrets) as worker:
        await worker.wait_started()
        assert await worker.stop() == 0, worker.log_text
    assert "canary" not in worker.log_text + worker.output


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("JUNHONG_REDIS_URL", "redis://u:redis-canary@127.0.0.1:1", 69),
        ("JUNHONG_POSTGRES_DSN", "postgresql://u@127.0.0.1:1/db", 69),
        ("JUNHONG_REDIS_URL", "redis-sentinel://:redis-canary@127.0.0.1:1/0?master=m&password=p-canary", 69),
        ("JUNHONG_REDIS_URL", "redis-cluster://u:redis-canary@127.0.0.1:1", 69),
        ("JUNHONG_REDIS_URL", "redis-sentinel://:redis-canary@127.0.0.1:1/0", 78),
        ("JUNHONG_GATEWAY_URL", "https://u:url-canary@gateway.invalid", 78),
        ("JUNHONG_STORAGE_URL", "s3://", 78),
    ],
)
async def test_a_failed_start_tells_none(
    secrets: dict[str, str], variable: str, value: str, code: int
) -> None:
    async with WorkerProcess({**secrets, variable: value, "JUNHONG_START_LIMIT": "500ms"}) as worker:
        assert await worker.wait_exit() == code, worker.log_text
    assert "canary" not in worker.log_text + worker.output
