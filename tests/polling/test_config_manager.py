from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import HOURLY, add_cards, add_rule
from tests.waiting import wait_until

from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.tasks import TaskType


async def test_a_change_arrives_without_waiting_for_the_next_read(
    pool: Pool, postgres_dsn: str, account: CarrierAccount
) -> None:
    manager = PollingConfigManager(pool, postgres_dsn, reread_every=timedelta(hours=1))
    await manager.start()
    (card,) = await add_cards(pool, account, 1)
    assert manager.rule_for(card, TaskType.POLLING_CARDDATA) is None
    seen: list[PollingConfigSnapshot] = []
    manager.subscribe(seen.append)
    await add_rule(pool)
    await wait_until(
        lambda: manager.rule_for(card, TaskType.POLLING_CARDDATA) is not None, description="the rule"
    )
    assert seen[-1] is manager.snapshot
    async with pool.acquire() as conn:
        await pause_account(conn, account.id, datetime.now(UTC) + timedelta(hours=1), "test")
    await wait_until(
        lambda: manager.snapshot.accounts[account.id].paused_until is not None, description="the pause"
    )
    await manager.stop()


async def test_where_no_notification_arrives_a_change_is_read_soon(
    pool: Pool, account: CarrierAccount
) -> None:
    manager = PollingConfigManager(pool, None)
    await manager.start()
    await add_rule(pool)
    await wait_until(lambda: manager.snapshot.rules, timeout=3.5, description="the rule")
    await manager.stop()


async def test_a_bad_version_is_refused_once_and_the_last_good_one_kept(
    pool: Pool, postgres_dsn: str, account: CarrierAccount
) -> None:
    await add_rule(pool)
    manager = PollingConfigManager(pool, postgres_dsn)
    await manager.refresh()
    good = manager.snapshot
    await add_rule(pool, {"carddata": {"interval_s": 0}})
    with capture_logs() as logs:
        await manager.refresh()
        await manager.refresh()
    assert manager.snapshot is good
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert entry["event"] == f"轮询配置无效，继续使用版本 {good.version}"
    await pool.execute("DELETE FROM polling_config WHERE intervals->'carddata'->>'interval_s' = '0'")
    with capture_logs() as logs:
        await manager.refresh()
    assert manager.snapshot.version > good.version
    assert manager.snapshot.rules == good.rules
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("轮询配置已生效", "info")], (
        "whoever read of the refusal reads of its end"
    )


@pytest.mark.parametrize(
    "intervals",
    ['{"carddata": {"interval_s": 1e400}}', f'{{"carddata": {"[" * 1200 + "]" * 1200}}}', '"60"'],
    ids=["a number beyond all bounds", "nested too deeply", "a text"],
)
async def test_what_only_postgresql_can_store_is_refused_and_ends_no_worker(
    pool: Pool, postgres_dsn: str, account: CarrierAccount, intervals: str
) -> None:
    await add_rule(pool)
    manager = PollingConfigManager(pool, postgres_dsn, reread_every=timedelta(hours=1))
    await manager.start()
    good = manager.snapshot
    with capture_logs() as logs:
        await pool.execute(
            "INSERT INTO polling_config (name, priority, intervals) VALUES ('坏', 0, $1::text::jsonb)",
            intervals,
        )
        await wait_until(
            lambda: [entry["event"] for entry in logs if entry["log_level"] == "error"],
            description="the refusal",
        )
    assert logs[-1]["event"] == f"轮询配置无效，继续使用版本 {good.version}"
    assert manager.snapshot is good
    await pool.execute("DELETE FROM polling_config WHERE name = '坏'")
    await wait_until(lambda: manager.snapshot.version > good.version, description="the repaired version")
    await manager.stop()


async def test_a_fault_nobody_thought_of_does_not_end_the_watch(
    pool: Pool, postgres_dsn: str, account: CarrierAccount
) -> None:
    manager = PollingConfigManager(pool, postgres_dsn, reread_every=timedelta(hours=1))
    await manager.start()
    await pool.execute("ALTER TABLE carrier_account DROP CONSTRAINT carrier_account_carrier_check")
    with capture_logs() as logs:
        await pool.execute("UPDATE carrier_account SET carrier = 'martian'")
        await wait_until(
            lambda: "轮询配置无法使用，继续使用当前版本" in [entry["event"] for entry in logs],
            description="the report",
        )
    await pool.execute("UPDATE carrier_account SET carrier = 'ctcc'")
    await wait_until(
        lambda: manager.snapshot.accounts[account.id].carrier == "ctcc", description="the repaired row"
    )
    await manager.stop()


async def test_a_database_that_is_away_changes_nothing_once_started(
    pool: Pool, postgres_dsn: str, postgres_server: EmbeddedPostgres
) -> None:
    await add_rule(pool, HOURLY)
    manager = PollingConfigManager(pool, postgres_dsn, reread_every=timedelta(milliseconds=20))
    await manager.start()
    good = manager.snapshot
    with capture_logs() as logs:
        await postgres_server.stop()
        await wait_until(
            lambda: "轮询配置读取失败，继续使用当前版本" in [entry["event"] for entry in logs],
            description="the warning",
        )
    assert manager.snapshot is good
    with capture_logs() as logs:
        await postgres_server.start()
        await add_rule(pool, HOURLY, priority=1)
        await wait_until(lambda: manager.snapshot.version > good.version, description="the new version")
    await manager.stop()
    assert [entry["event"] for entry in logs].count("轮询配置恢复读取") == 1


async def test_the_first_read_must_succeed(
    pool: Pool, postgres_dsn: str, postgres_server: EmbeddedPostgres
) -> None:
    await postgres_server.stop()
    with pytest.raises(OSError):  # noqa: PT011 - whatever the system says about the socket
        await PollingConfigManager(pool, postgres_dsn).start()
    await postgres_server.start()
