"""What polls are measured on: real Redis and PostgreSQL, a simulated carrier in its own process, cards."""

import asyncio
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import open_pool
from junhong_cmp.embedded.services import EmbeddedServices

ACCOUNTS: Final = 4
KEY_ID: Final = "bench"
_STOP_LIMIT_S: Final = 15.0

_NEW_ACCOUNTS = """
    INSERT INTO carrier_account (code, carrier, qps, concurrency, batch_size)
    SELECT 'bench-' || n, 'other', 1000000, 100000, 100 FROM generate_series(1, $1::int) AS n
"""
_CARDS = """
    INSERT INTO iot_card (account_id, iccid, iccid19, status)
    SELECT a.id, i.iccid, left(i.iccid, 19), 'active'
    FROM generate_series(1, $1::int) AS n
    CROSS JOIN LATERAL (SELECT '898600' || lpad(n::text, 14, '0') AS iccid) AS i
    JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM carrier_account) AS a
        ON a.place = n % $2::int
"""
_RULE = "INSERT INTO polling_config (name, priority, intervals) VALUES ('bench', 100, $1)"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage is where everybody is measured: running servers, a carrier that answers, cards to ask about."""

    redis_url: str
    postgres_dsn: str
    gateway_url: str
    redis_pid: int
    postgres_pid: int
    carrier_pid: int
    secret: str = field(repr=False)


def start_services(folder: Path) -> EmbeddedServices:
    """Start Redis and PostgreSQL in a folder of their own."""
    services = EmbeddedServices(folder)
    asyncio.run(services.start())
    return services


async def fill(dsn: str, cards: int) -> None:
    """Migrate the database and put the cards in, evenly over the accounts."""
    await migrate(dsn)
    pool = await open_pool(dsn, max_size=2)
    try:
        await pool.execute(_RULE, {"carddata": {"interval_s": 3600, "jitter": 0.1}})
        await pool.execute(_NEW_ACCOUNTS, ACCOUNTS)
        await pool.execute(_CARDS, cards, ACCOUNTS, timeout=600)
        await pool.execute("VACUUM ANALYZE iot_card", timeout=600)
    finally:
        await pool.close()


@contextmanager
def carrier(secret: str) -> Iterator[tuple[str, int]]:
    """Run a simulated carrier; yield its URL and process id."""
    command = [sys.executable, "-m", "junhong_cmp", "simulate-gateway", "--port", "0", "--key-id", KEY_ID]
    env = {"JUNHONG_GATEWAY_SECRET": secret, "JUNHONG_LOG_LEVEL": "warning"}
    with _running(command, env) as process:
        told: dict[str, Any] = json.loads(process.stdout.readline()) if process.stdout else {}
        yield told["url"], process.pid


def new_secret() -> str:
    """Return a secret for one run."""
    return secrets.token_hex(32)


@contextmanager
def _running(command: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_STOP_LIMIT_S)
