"""A million cards in PostgreSQL, made by PostgreSQL itself."""

from typing import Final

from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import open_pool

ACCOUNTS: Final = 64
INTERVAL_S: Final = 3600

_ACCOUNTS = """
    INSERT INTO carrier_account (code, carrier, qps, concurrency)
    SELECT 'bench-' || n, 'cmcc', 1000000, 1000000 FROM generate_series(1, $1::int) AS n
"""
_CARDS = """
    INSERT INTO iot_card (account_id, iccid, iccid19, category, status, real_name_required, real_name_status)
    SELECT a.id, i.iccid, left(i.iccid, 19), (ARRAY['', 'camera', 'meter'])[1 + n % 3],
           (ARRAY['active', 'active', 'suspended'])[1 + n % 3], true,
           (ARRAY['unverified', 'unknown'])[1 + n % 2]
    FROM generate_series(1, $1::int) AS n
    CROSS JOIN LATERAL (SELECT '898600' || lpad(n::text, 14, '0') AS iccid) AS i
    JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM carrier_account) AS a
        ON a.place = n % $2::int
"""
_RULE = "INSERT INTO polling_config (name, priority, intervals) VALUES ('bench', 100, $1)"


async def fill(dsn: str, cards: int) -> None:
    """Migrate the database and put the cards in: three task types each, over all accounts."""
    await migrate(dsn)
    pool = await open_pool(dsn, max_size=2)
    try:
        kinds = ("carddata", "cardstatus", "realname")
        await pool.execute(_RULE, {kind: {"interval_s": INTERVAL_S, "jitter": 0.1} for kind in kinds})
        await pool.execute(_ACCOUNTS, ACCOUNTS)
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute("SET LOCAL statement_timeout = 0")
            await conn.execute(_CARDS, cards, ACCOUNTS, timeout=600)
        await pool.execute("VACUUM ANALYZE iot_card", timeout=600)
    finally:
        await pool.close()
