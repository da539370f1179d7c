import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from structlog.testing import capture_logs
from tests.db.empty_database import EmptyDatabase

import junhong_cmp.db
from junhong_cmp.db.migrate import migrate, migrate_down
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.schema import REQUIRED_VERSION

TABLES = {
    "alembic_version", "alert_event", "alert_rule", "card_operation", "card_status_history",
    "carrier_card_difference", "data_plan",
    "card_usage_cycle", "card_usage_daily", "carrier_account", "data_pool", "import_row", "import_task",
    "iot_card", "poll_error", "poll_minute", "polling_config", "polling_config_version",
    "polling_pause",     "usage_anomaly",
}  # fmt: skip


@pytest.fixture
async def empty(postgres_dsn: str) -> AsyncIterator[EmptyDatabase]:
    async with EmptyDatabase.beside(postgres_dsn) as database:
        yield database


def revisions() -> list[str]:
    config = Config()
    config.set_main_option("script_location", str(Path(junhong_cmp.db.__file__).parent / "migrations"))
    script = ScriptDirectory.from_config(config)
    return [revision.revision for revision in reversed(list(script.walk_revisions()))]


def test_the_required_version_is_the_newest_revision() -> None:
    assert revisions()[-1] == REQUIRED_VERSION
    assert revisions() == sorted(revisions()), "versions are compared as text"


async def test_an_empty_database_gets_every_table(empty: EmptyDatabase) -> None:
    with capture_logs() as logs:
        report = await migrate(empty.dsn)
    assert (report.from_version, report.to_version, report.changed) == (None, REQUIRED_VERSION, True)
    assert await empty.tables() == TABLES
    assert [entry["event"] for entry in logs] == ["数据库结构已更新"]


async def test_again_changes_nothing(empty: EmptyDatabase) -> None:
    await migrate(empty.dsn)
    with capture_logs() as logs:
        report = await migrate(empty.dsn)
    assert not report.changed
    assert logs == []


async def test_many_at_once_apply_each_revision_once(empty: EmptyDatabase) -> None:
    reports = await asyncio.gather(*(migrate(empty.dsn) for _ in range(4)))
    assert sorted(report.changed for report in reports) == [False, False, False, True]
    assert await empty.tables() == TABLES


async def test_every_revision_steps_up_and_down_alone(empty: EmptyDatabase) -> None:
    await migrate(empty.dsn)
    full = await empty.schema()
    for version in [*reversed(revisions()[:-1]), None]:
        assert (await migrate_down(empty.dsn, version)).to_version == version
        await migrate(empty.dsn)
        assert await empty.schema() == full, f"up again from {version}"
    await migrate_down(empty.dsn, None)
    assert await empty.tables() == set()
    assert await empty.functions() == set()


async def test_a_newer_database_is_left_alone(empty: EmptyDatabase) -> None:
    await migrate(empty.dsn)
    await empty.execute("UPDATE alembic_version SET version_num = '9999'")
    report = await migrate(empty.dsn)
    assert (report.from_version, report.to_version) == ("9999", "9999")


async def test_a_failing_revision_leaves_nothing_behind(empty: EmptyDatabase) -> None:
    await empty.execute("CREATE TABLE alert_rule (id int)")  # in the way of the last revision
    with pytest.raises(asyncpg.DuplicateTableError):
        await migrate(empty.dsn)
    assert await empty.tables() == {"alert_rule"}


def _as_given(host: str, database: str, user: str) -> str:
    return f"postgresql://{user}@/{database}?host={host}"


def _quoted_host(host: str, database: str, user: str) -> str:
    return f"postgres://{user}@{quote(host, safe='')}/{database}"


def _all_in_the_query(host: str, database: str, user: str) -> str:
    return f"postgresql://?host={host}&dbname={database}&user={user}"


@pytest.mark.parametrize("form", [_as_given, _quoted_host, _all_in_the_query])
async def test_every_dsn_form_of_the_pool_works(
    empty: EmptyDatabase, form: Callable[[str, str, str], str]
) -> None:
    dsn = form(await empty.socket_folder(), empty.name, await empty.user())
    assert (await migrate(dsn)).to_version == REQUIRED_VERSION


async def test_alembic_neither_prints_nor_configures_logging(
    empty: EmptyDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger("alembic").handlers)
    with capture_logs():
        await migrate(empty.dsn)
    assert (root.level, list(root.handlers), logging.getLogger("alembic").handlers) == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO carrier_account (code, carrier) VALUES ('a', 'vodafone')",
        "INSERT INTO carrier_account (code, carrier, billing_day) VALUES ('a', 'cmcc', 32)",
        "INSERT INTO carrier_account (code, carrier, qps) VALUES ('a', 'cmcc', 0)",
        "INSERT INTO iot_card (iccid, iccid19, account_id) VALUES ('89860', '89860', 1)",
        "INSERT INTO iot_card (iccid, iccid19, account_id) VALUES ('8986012345678901234', '898601', 1)",
        "INSERT INTO polling_config_version (version) VALUES (7)",
    ],
)
async def test_the_schema_refuses_nonsense(pool: Pool, statement: str) -> None:
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await pool.execute(statement)


async def test_configuration_changes_bump_the_version_and_announce_it(pool: Pool) -> None:
    heard: list[object] = []

    def hear(*message: object) -> None:
        heard.append(message[-1])

    async with pool.acquire() as conn:
        await conn.add_listener("polling_config", hear)
        before = await conn.fetchval("SELECT version FROM polling_config_version")
        await conn.execute(
            "INSERT INTO polling_config (name, priority, intervals) VALUES ('all', 100, $1)",
            {"carddata": {"interval_s": 3600, "jitter": 0.1, "enabled": True}},
        )
        await conn.execute("INSERT INTO carrier_account (code, carrier) VALUES ('a', 'cmcc')")
        await conn.execute("UPDATE carrier_account SET qps = 5")
        await conn.execute("UPDATE carrier_account SET qps = 6 WHERE code = 'nobody'")
        after = await conn.fetchval("SELECT version FROM polling_config_version")
        await conn.remove_listener("polling_config", hear)
    assert after == before + 3
    assert heard == [str(before + 1), str(before + 2), str(before + 3)]
