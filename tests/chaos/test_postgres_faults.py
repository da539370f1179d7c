"""PostgreSQL restarts, refuses, locks and changes behind a fleet at work."""

import asyncio
import signal
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from tests.chaos.faults import at_work, wait_s
from tests.chaos.fleet import CARDS, INTERVAL_S, Fleet
from tests.faultproxy import FaultProxy
from tests.pgbouncer import PROGRAM, pgbouncer
from tests.waiting import wait_until

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.store import delete_card
from junhong_cmp.db.migrate import REQUIRED_VERSION, migrate, migrate_down
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.errors import ExitCode

pytestmark = pytest.mark.chaos

_TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'chaos'
"""


_TOUCH = "UPDATE iot_card SET updated_at = now() WHERE id = $1"
OLDER = f"{int(REQUIRED_VERSION) - 1:04}"
GRACE_S = 1.5
"""A call is still made by whoever was told a moment ago that it may write."""


async def admin_of(fleet: Fleet) -> asyncpg.Connection:
    return await asyncpg.connect(fleet.postgres_dsn, server_settings={"application_name": "chaos"})


async def test_d1_postgres_killed_and_restarted(
    fleet: Fleet, cards: list[Card], postgres_server: EmbeddedPostgres
) -> None:
    await at_work(fleet, cards)
    for _ in range(2):
        await postgres_server.kill()
        await wait_s(0.5)
        await postgres_server.start()
        await wait_s(1.0)
    await fleet.judge(cards)


async def test_d1_backends_terminated_over_and_over(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    admin = await admin_of(fleet)
    for _ in range(10):
        await admin.execute(_TERMINATE)
        await wait_s(0.3)
    await admin.close()
    await fleet.judge(cards)


async def test_d2_transactions_deadlock_with_those_of_others(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    admin = await admin_of(fleet)
    await admin.execute("SET deadlock_timeout = '1min'")  # the fleet finds out first, and is the one to yield
    found = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"

    async def crossed() -> bool:
        async with admin.transaction():
            await admin.execute(_TOUCH, cards[-1].id)
            await wait_s(0.2)
            for card in cards[:-1]:
                await admin.execute(_TOUCH, card.id)
        return bool(await admin.fetchval(found))

    await wait_until(crossed, timeout=60, description="two transactions deadlocked")
    await admin.close()
    await fleet.judge(cards)
    assert any(worker.find("数据库事务冲突，重试", sqlstate="40P01") for worker in fleet.workers)


async def test_d3_postgres_read_only(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    admin = await admin_of(fleet)
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    await admin.execute(_TERMINATE)
    consumer = fleet.workers[-1]
    await consumer.wait_for("数据库拒绝写入，暂停调用运营商")
    refused = fleet.note("refused")
    await wait_s(4.0)
    asked = {event["card"] for event in fleet.events("gw_begin") if event["mono"] > refused + GRACE_S}
    assert not asked, "what cannot be kept was asked for"
    await admin.execute("SET default_transaction_read_only = off")
    await admin.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
    await admin.execute(_TERMINATE)
    await admin.close()
    await fleet.judge(cards)


async def test_d4_four_workers_share_few_connections_after_an_outage(
    fleet: Fleet, cards: list[Card], postgres_server: EmbeddedPostgres
) -> None:
    await fleet.enlist("leader")
    for _ in range(3):
        await fleet.enlist("consumer")
    await fleet.settle(cards)
    await postgres_server.kill()
    await wait_s(1.0)
    await postgres_server.start()
    await fleet.judge(cards)


async def test_d5_the_table_of_cards_is_locked(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    admin = await admin_of(fleet)
    async with admin.transaction():
        await admin.execute("LOCK TABLE iot_card IN ACCESS EXCLUSIVE MODE")
        await wait_s(6.0)
    await admin.close()
    await fleet.judge(cards)


async def test_d6_the_answer_to_a_commit_is_lost(fleet: Fleet, cards: list[Card]) -> None:
    dsn = urlsplit(fleet.postgres_dsn)
    place = parse_qs(dsn.query)
    socket = f"unix://{place['host'][0]}/.s.PGSQL.{place['port'][0]}"
    async with FaultProxy(socket) as proxy:
        fleet.postgres_dsn = f"postgresql://{dsn.username}@127.0.0.1:{proxy.port}{dsn.path}?sslmode=disable"
        await at_work(fleet, cards)
        proxy.cut_after(b"COMMIT;", times=6)
        await wait_until(lambda: proxy.cuts >= 6, timeout=30, description="answers to commits were lost")
        await fleet.judge(cards)


@pytest.mark.parametrize("version", [None, OLDER], ids=["missing", "older"])
async def test_d7_schema_is_not_the_needed_one(fleet: Fleet, version: str | None) -> None:
    await migrate_down(fleet.postgres_dsn, version)
    for role in ("leader", "consumer"):
        worker = await fleet.enlist(role, started=False, env={"JUNHONG_START_LIMIT": "1s"})
        assert await worker.wait_exit() == ExitCode.CONFIGURATION
        reason = worker.find("Worker 未能启动")[0]["reason"]
        assert REQUIRED_VERSION in reason
        assert "junhong migrate" in reason
    await migrate(fleet.postgres_dsn)
    await fleet.open_account()
    await fleet.poll_usage_every(INTERVAL_S)
    cards = await fleet.issue_cards(CARDS)
    await fleet.enlist("leader")
    await fleet.judge(cards)


@pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")
async def test_d8_behind_pgbouncer_in_transaction_mode(
    fleet: Fleet, cards: list[Card], data_folder: Path
) -> None:
    direct = fleet.postgres_dsn
    async with pgbouncer(direct, data_folder) as url:
        fleet.postgres_dsn = url
        through = {"JUNHONG_POSTGRES_PGBOUNCER": "true"}
        await fleet.enlist("leader", env=through)
        await fleet.enlist("consumer", env=through)
        await fleet.settle(cards)
        changed = fleet.note("changed")
        await fleet.poll_usage_every(1)
        taken = [worker.wait_for("轮询配置已生效", count=2, timeout=3.5) for worker in fleet.workers]
        await asyncio.gather(*taken)  # no notification can arrive
        assert time.monotonic() - changed <= 3.5
        admin = await asyncpg.connect(direct, server_settings={"application_name": "chaos"})
        for _ in range(5):
            await admin.execute(_TERMINATE)
            await wait_s(0.3)
        await admin.close()
        await fleet.judge(cards)
        logs = "".join(worker.log_text for worker in fleet.workers)
        assert "prepared statement" not in logs
        assert "bind message" not in logs


async def test_d9_a_card_deleted_while_it_is_polled(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    frozen = await fleet.enlist("consumer", failpoint="after_gw:stop:5")
    held = await fleet.event("failpoint", pid=frozen.pid)
    card_id = [e for e in fleet.events("gw_call", pid=frozen.pid) if e["seq"] < held["seq"]][-1]["card"]
    async with fleet.pool.acquire() as conn:
        assert await delete_card(conn, card_id) is not None
    frozen.signal(signal.SIGCONT)
    left = [card for card in cards if card.id != card_id]

    async def gone() -> bool:
        return str(card_id) not in await fleet.members_of_shards()

    await wait_until(gone, timeout=30, description="the deleted card left its shard")
    await fleet.settle(left)
    await fleet.judge(left)


async def test_d9_a_card_moved_to_another_account_while_it_is_polled(fleet: Fleet, cards: list[Card]) -> None:
    async with fleet.pool.acquire() as conn:
        other = await record_account(
            conn, NewAccount(code="other", carrier=Carrier.CUCC, qps=2_000.0, concurrency=200)
        )
    await fleet.enlist("leader")
    frozen = await fleet.enlist("consumer", failpoint="after_gw:stop:5")
    held = await fleet.event("failpoint", pid=frozen.pid)
    card_id = [e for e in fleet.events("gw_call", pid=frozen.pid) if e["seq"] < held["seq"]][-1]["card"]
    await fleet.pool.execute("UPDATE iot_card SET account_id = $1 WHERE id = $2", other.id, card_id)
    frozen.signal(signal.SIGCONT)
    await wait_until(
        lambda: moved(fleet, other.id, card_id), timeout=30, description="the card is in its new shard only"
    )
    await fleet.judge(cards)


async def moved(fleet: Fleet, account_id: int, card_id: int) -> bool:
    places = [
        key
        async for key in fleet.redis.scan_iter(match="polling:{carddata:*}:due")
        if await fleet.redis.zscore(key, str(card_id)) is not None
    ]
    return len(places) == 1 and f"carddata:{account_id}:".encode() in places[0]


async def test_d10_initialisation_dies_half_way_and_cards_change_meanwhile(
    fleet: Fleet, cards: list[Card]
) -> None:
    doomed = await fleet.enlist("leader", failpoint="init_page_2:kill", started=False)
    assert await doomed.wait_exit(timeout=30) == -signal.SIGKILL
    late = await fleet.issue_cards(50, first=len(cards))
    async with fleet.pool.acquire() as conn:
        await delete_card(conn, cards[0].id)
    await fleet.enlist("leader")
    await fleet.judge([*cards[1:], *late])
