"""Twenty thousand cards and what is recorded of them, unknown or known to PostgreSQL's planner."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final

import pytest
from tests.query_plans import PlanWatch, watched_pool

from junhong_cmp.db.pool import Pool

ROWS: Final = 20_000
CYCLE: Final = "2026-03-01"
CROWDED: Final = 1
"""The account that has every second card; another has the others, so that ids have gaps."""


class Statistics(Enum):
    """What the planner knows of the tables."""

    NONE = "never gathered"
    OLD = "gathered when there was one row"
    FRESH = "gathered when all was there"


whatever_is_known = pytest.mark.parametrize("statistics", Statistics, ids=lambda known: known.name.lower())
"""Marks a test that the planner's knowledge must make no difference to."""

_ACCOUNTS: Final = """
    INSERT INTO carrier_account (code, carrier) VALUES ('crowded', 'cmcc'), ('other', 'cmcc');
    INSERT INTO data_plan (account_id, name, quota_kb) VALUES (1, 'plan', 1000);
    INSERT INTO data_pool (account_id, name, capacity_kb, cycle, used_kb)
        SELECT 1, 'pool ' || n, 1000, '2026-03-01', 2000 FROM generate_series(1, 10) AS n;
    INSERT INTO alert_rule (name, kind, threshold)
        SELECT kind, kind, 0.5 FROM unnest(ARRAY['threshold', 'pool_usage']) AS kind;
    INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes, finished_at)
        SELECT 1, 'cards.csv', 'key', repeat(n::text, 64), 1, now() - interval '1 year'
        FROM generate_series(1, 2) AS n;
"""
_FILL: Final[Mapping[str, str]] = {
    "iot_card": """
        INSERT INTO iot_card (iccid, iccid19, account_id, plan, pool_id, status, stop_reason, cycle,
            cycle_used_kb, threshold_kb, expires_at)
        SELECT iccid, left(iccid, 19), 1 + n % 2, 'plan', CASE WHEN n % 2 = 0 THEN 1 + n / 2 % 10 END,
            CASE WHEN n % 4 = 0 THEN 'suspended' ELSE 'active' END,
            CASE WHEN n % 4 = 0 THEN 'over_plan' ELSE 'none' END, '2026-03-01', 1100, 1000, '2026-03-31'
        FROM generate_series($1::int, $2::int) AS n,
            LATERAL (SELECT (89860000000000000000 + n * 10)::text AS iccid)
        ORDER BY n
    """,
    "card_usage_cycle": """
        INSERT INTO card_usage_cycle (card_id, cycle, used_kb)
        SELECT n, cycle, 1100
        FROM generate_series($1::int, $2::int) AS n, unnest(ARRAY['2026-02-01', '2026-03-01']) AS cycle
    """,
    "card_usage_daily": """
        INSERT INTO card_usage_daily (card_id, day, used_kb)
        SELECT n, day, 9
        FROM generate_series($1::int, $2::int) AS n, unnest('{2026-03-05,2026-03-06}'::date[]) AS day
    """,
    "card_operation": """
        INSERT INTO card_operation (card_id, kind, reason, request_id, status, cycle)
        SELECT n, 'stop', 'over_plan', n::text, 'done', '2026-02-01'
        FROM generate_series($1::int, $2::int) AS n
    """,
    "alert_event": """
        INSERT INTO alert_event (rule_id, card_id, cycle, level)
        SELECT rule, n, '2026-02-01', 'warning'
        FROM generate_series($1::int, $2::int) AS n, generate_series(1, 2) AS rule
    """,
    "import_row": """
        INSERT INTO import_row (task_id, line_no, status, value, card_id)
        SELECT task, n, CASE WHEN n % 2 = 0 THEN 'imported' ELSE 'skipped' END, 'value', n
        FROM generate_series($1::int, $2::int) AS n, generate_series(1, 2) AS task
    """,
    "poll_minute": """
        INSERT INTO poll_minute (task_type, account_id, minute)
        SELECT 'polling:carddata', 1, now() - n * interval '1 minute'
        FROM generate_series($1::int, $2::int) AS n
    """,
    "poll_error": """
        INSERT INTO poll_error (task_type, account_id, code, message, last_at)
        SELECT 'polling:carddata', 1, 'timeout', n::text, now() - n * interval '1 minute'
        FROM generate_series($1::int, $2::int) AS n
    """,
}


async def gather_crowd(pool: Pool, statistics: Statistics, *tables: str) -> None:
    """Fill ``iot_card`` and the tables named, in an empty database; ids and lines count from 1."""
    await pool.execute(_ACCOUNTS)
    for table in ("iot_card", *tables):
        await pool.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        await pool.execute(_FILL[table], 1, 1)
        if statistics is Statistics.OLD:
            await pool.execute(f"VACUUM ANALYZE {table}")
        await pool.execute(_FILL[table], 2, ROWS)
        if statistics is Statistics.FRESH:
            await pool.execute(f"VACUUM ANALYZE {table}")


@asynccontextmanager
async def watched_crowd(dsn: str, statistics: Statistics, *tables: str) -> AsyncIterator[PlanWatch]:
    """Gather the crowd in the database and watch what is done with it."""
    async with watched_pool(dsn) as watch:
        await gather_crowd(watch.pool, statistics, *tables)
        watch.plans.clear()
        yield watch
