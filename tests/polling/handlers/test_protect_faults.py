"""Stops and resumes while PostgreSQL restarts, refuses, locks and loses answers: rows D1 to D9."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.faultproxy import FaultProxy
from tests.polling.handlers.limited_cards import STOPPED, over_limit
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock, wait_until

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import Card, CardStatus, StopReason
from junhong_cmp.cards.observations import RecordOutcome, StatusWrite, UsageWrite
from junhong_cmp.cards.records import record_status
from junhong_cmp.cards.store import delete_card
from junhong_cmp.cards.usage_records import record_usage
from junhong_cmp.db.pool import Conn, Pool, open_pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, in_transaction
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.operations import OperationAnswer
from junhong_cmp.polling.operation_rules import ASK_AFTER

_TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def rules(plant: Plant, clock: FakeClock) -> RuleParts:
    return RuleParts(plant, clock)


@pytest.fixture
async def card(plant: Plant) -> Card:
    account = await add_account(plant.pool, "protected", protect_enabled=True)
    await plant.config.refresh()
    return (await over_limit(plant, account))[0]


@pytest.fixture
async def admin(postgres_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(postgres_dsn)
    yield conn
    await conn.close()


@asynccontextmanager
async def behind_a_proxy(
    plant: Plant, dsn: str, redis: Redis, clock: FakeClock
) -> AsyncIterator[tuple[FaultProxy, RuleParts]]:
    """Yield a proxy before PostgreSQL, and the rules at work through it."""
    parts = urlsplit(dsn)
    place = parse_qs(parts.query)
    host, port = place.get("host", [parts.hostname or ""])[0], place.get("port", ["5432"])[0]
    async with FaultProxy(f"unix://{host}/.s.PGSQL.{port}") as proxy:
        proxied = f"postgresql://{parts.username or 'postgres'}@127.0.0.1:{proxy.port}{parts.path}"
        pool = await open_pool(proxied, max_size=4)
        through = Plant(pool, proxied, redis, gateway=plant.gateway)
        try:
            await through.config.refresh()
            yield proxy, RuleParts(through, clock)
        finally:
            await through.close()
            await pool.close()


async def test_d1_the_answer_to_a_stop_comes_while_the_database_restarts(
    plant: Plant,
    rules: RuleParts,
    card: Card,
    postgres_server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
    clock: FakeClock,
) -> None:
    stop = plant.gateway.stop

    async def stop_then_lose_the_database(*arguments: Any) -> OperationAnswer:
        answer = await stop(*arguments)
        await postgres_server.kill()
        return answer

    monkeypatch.setattr(plant.gateway, "stop", stop_then_lose_the_database)
    with pytest.raises(PutBack, match="依赖暂不可用"):
        await rules.run_protect(card)
    await postgres_server.start()
    await rules.run_protect(card)
    assert plant.gateway.calls == [("stop", card.id)], "what may have been done is not done again"
    clock.advance(ASK_AFTER * 2)
    await rules.followup().run(asyncio.Event())
    assert await rules.operations() == STOPPED
    assert (await rules.reload(card)).stop_reason is StopReason.THRESHOLD


async def test_d2_writers_that_lose_a_deadlock_write_in_the_end(plant: Plant, card: Card) -> None:
    other = (await over_limit_cards(plant, card))[0]

    async def crossing(first: Card, second: Card) -> None:
        async def work(conn: Conn) -> None:
            await conn.execute("UPDATE iot_card SET batch_no = 'x' WHERE id = $1", first.id)
            arrived.append(first.id)
            if len(arrived) == 1:
                await wait_until(lambda: len(arrived) > 1, description="the other is in its transaction")
            await conn.execute("UPDATE iot_card SET batch_no = 'y' WHERE id = $1", second.id)

        await in_transaction(plant.pool, work)

    arrived: list[int] = []
    await asyncio.gather(crossing(card, other), crossing(other, card))
    assert len(arrived) == 3, "one of the two was run again"


async def test_d3_no_call_is_made_whose_answer_could_not_be_kept(
    plant: Plant, rules: RuleParts, card: Card, admin: asyncpg.Connection
) -> None:
    database = await admin.fetchval("SELECT current_database()")
    await admin.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    await admin.execute(_TERMINATE)
    with pytest.raises(PutBack, match="依赖暂不可用"):
        await rules.run_protect(card)
    assert plant.gateway.calls == []
    await admin.execute("SET default_transaction_read_only = off")
    await admin.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
    await admin.execute(_TERMINATE)
    await wait_until(lambda: _works(plant.pool), description="the pool has sound connections")
    await rules.run_protect(card)
    assert await rules.operations() == STOPPED


async def test_d5_a_table_that_is_locked_makes_a_stop_wait_without_a_call(
    plant: Plant, card: Card, redis: Redis, postgres_dsn: str, clock: FakeClock, admin: asyncpg.Connection
) -> None:
    pool = await open_pool(postgres_dsn, max_size=4, statement_timeout=timedelta(milliseconds=300))
    impatient = Plant(pool, postgres_dsn, redis, gateway=plant.gateway)
    try:
        await impatient.config.refresh()
        async with admin.transaction():
            await admin.execute("LOCK TABLE card_operation IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(PutBack, match="依赖暂不可用"):
                await RuleParts(impatient, clock).run_protect(card)
        assert plant.gateway.calls == []
        await RuleParts(impatient, clock).run_protect(card)
        assert plant.gateway.calls == [("stop", card.id)]
    finally:
        await impatient.close()
        await pool.close()


async def test_d6_a_placed_operation_whose_commit_was_not_answered_is_found_and_sent_once(
    plant: Plant, redis: Redis, card: Card, postgres_dsn: str, clock: FakeClock
) -> None:
    async with behind_a_proxy(plant, postgres_dsn, redis, clock) as (proxy, rules):
        proxy.cut_after(b"INSERT INTO card_operation")
        with pytest.raises(PutBack, match="依赖暂不可用"):
            await rules.run_protect(card)
        assert plant.gateway.calls == []
        await rules.run_protect(card)
        assert await rules.operations() == STOPPED
        assert plant.gateway.calls == [("stop", card.id)]


STATEMENTS = {
    "limits": b"FROM iot_card AS c\n        LEFT JOIN data_plan",
    "past": b"FROM unnest($1::bigint[]) AS w (id)",
    "place": b"INSERT INTO card_operation",
    "last sent": b"SELECT max(sent_at)",
    "begin": b"SET sent_at = $2",
    "settle": b"SET status = $3",
    "card": b"SET\n            status = $2",
}


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_d6_whichever_answer_of_the_database_is_lost_the_card_is_stopped_once(
    plant: Plant, redis: Redis, card: Card, postgres_dsn: str, clock: FakeClock, statement: str
) -> None:
    async with behind_a_proxy(plant, postgres_dsn, redis, clock) as (proxy, rules):
        proxy.cut_after(STATEMENTS[statement])
        with pytest.raises(PutBack, match="依赖暂不可用"):
            await rules.run_protect(card)
        for _ in range(3):
            await rules.run_protect(card)
            clock.advance(ASK_AFTER * 2)
            await rules.followup().run(asyncio.Event())
        assert await rules.operations() == STOPPED
        assert (await rules.reload(card)).stop_reason is StopReason.THRESHOLD
        stops = [operation for operation, _ in plant.gateway.calls if operation == "stop"]
        assert len(stops) == 1, plant.gateway.calls


async def test_d9_a_card_deleted_while_it_is_stopped_stays_deleted(
    plant: Plant, rules: RuleParts, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = plant.gateway.stop

    async def stop_a_card_that_goes(account: GatewayAccount, *arguments: Any) -> OperationAnswer:
        answer = await stop(account, *arguments)
        async with plant.pool.acquire() as conn:
            await delete_card(conn, card.id)
        return answer

    monkeypatch.setattr(plant.gateway, "stop", stop_a_card_that_goes)
    await rules.run_protect(card)
    row = await plant.pool.fetchrow("SELECT deleted_at, status FROM iot_card WHERE id = $1", card.id)
    assert row is not None
    assert row["deleted_at"] is not None
    assert row["status"] == "active"
    assert await rules.operations() == STOPPED, "the carrier did it all the same"


async def test_d9_answers_about_a_card_that_moved_are_dropped(plant: Plant, card: Card) -> None:
    other = await add_account(plant.pool, "other")
    await plant.pool.execute("UPDATE iot_card SET account_id = $2 WHERE id = $1", card.id, other.id)
    at = await plant.pool.fetchval("SELECT now()")
    usage = UsageWrite(
        card_id=card.id, account_id=card.account_id, reading_kb=9, reading_at=at, observed_at=at
    )
    status = StatusWrite(
        card_id=card.id,
        account_id=card.account_id,
        raw="4",
        status=CardStatus.SUSPENDED,
        observed_at=at,
    )
    async with plant.pool.acquire() as conn:
        assert (await record_usage(conn, [usage]))[0].outcome is RecordOutcome.GONE
        assert (await record_status(conn, [status]))[0].outcome is RecordOutcome.GONE


async def over_limit_cards(plant: Plant, card: Card) -> list[Card]:
    account = plant.config.snapshot.accounts[card.account_id]
    return await add_cards(plant.pool, account, 1, first=900)


async def _works(pool: Pool) -> bool:
    try:
        await pool.execute("CREATE TEMP TABLE probe (x int)")
        await pool.execute("DROP TABLE probe")
    except DATABASE_FAULTS:
        return False
    return True
