from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_cards, poll_task
from tests.waiting import FakeClock

from junhong_cmp.cards.model import CardStatus, CarrierAccount, RealNameStatus
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.eligibility import VERIFIED_RECHECK
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.tasks import PollPayload, TaskType

HANDLERS = (CarddataHandler, CardstatusHandler, RealnameHandler)


@pytest.mark.parametrize("make", HANDLERS)
async def test_each_handler_keeps_its_own_progress(plant: Plant, account: CarrierAccount, make: Any) -> None:
    (card,) = await add_cards(plant.pool, account, 1, real_name_required=True)
    handler = make(plant.base)
    await handler.process_task(await plant.task_for(card, handler.task_type))
    await handler.close()
    after = (await load_cards(plant.pool, [card.id]))[card.id]
    for other in HANDLERS:
        progress = getattr(after, other.task_type.kind)
        assert (progress.succeeded_at is not None) == (other is make)


async def test_a_status_nobody_knows_is_kept_raw(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.status = ("99", "unknown")
    await CardstatusHandler(plant.base).process_task(await plant.task_for(card, TaskType.POLLING_CARDSTATUS))
    after = (await load_cards(plant.pool, [card.id]))[card.id]
    assert (after.carrier_status_raw, after.status) == ("99", CardStatus.UNKNOWN)


async def test_a_verified_card_is_asked_about_again_seldom(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1, real_name_required=True)
    handler, kind = RealnameHandler(plant.base), TaskType.POLLING_REALNAME
    await handler.process_task(await plant.task_for(card, kind))
    after = (await load_cards(plant.pool, [card.id]))[card.id]
    assert after.real_name_status is RealNameStatus.VERIFIED
    rule = plant.config.rule_for(after, kind)
    assert rule is not None
    assert rule.interval == VERIFIED_RECHECK


async def test_a_card_that_needs_no_verification_leaves_the_shard(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    kind = TaskType.POLLING_REALNAME
    await RealnameHandler(plant.base).process_task(await plant.task_for(card, kind))
    assert await plant.score(card, kind) is None
    assert plant.gateway.calls == []


async def fill(pool: Pool, at: datetime, rows: int, account_id: int) -> None:
    await pool.execute(
        "INSERT INTO poll_minute (task_type, account_id, minute) "
        "SELECT 'polling:carddata', i, $1 FROM generate_series(1, $2::int) AS i",
        at,
        rows,
    )
    await pool.execute(
        "INSERT INTO poll_error (task_type, account_id, code, message, last_at) VALUES ('t', 1, 'c', $2, $1)",
        at,
        at.isoformat(),
    )
    task = await pool.fetchval(
        "INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes, finished_at) "
        "VALUES ($1, 'f', 'k', $2, 1, $3) RETURNING id",
        account_id,
        f"{int(at.timestamp()):064x}",
        at,
    )
    await pool.execute(
        "INSERT INTO import_row (task_id, line_no, status) "
        "SELECT $1, i, 'skipped' FROM generate_series(1, $2::int) AS i",
        task,
        rows,
    )


async def count(pool: Pool) -> tuple[int, int, int]:
    return (
        await pool.fetchval("SELECT count(*) FROM poll_minute"),
        await pool.fetchval("SELECT count(*) FROM poll_error"),
        await pool.fetchval("SELECT count(*) FROM import_row"),
    )


async def test_old_rows_are_deleted_in_chunks_and_new_ones_stay(
    pool: Pool, account: CarrierAccount, clock: FakeClock
) -> None:
    await fill(pool, clock.now() - timedelta(days=400), 25, account.id)
    await fill(pool, clock.now(), 7, account.id)
    handler = DataCleanupHandler(pool, chunk=10, clock=clock)
    task = poll_task(TaskType.DATA_CLEANUP, PollPayload(0, 0, 0))
    with capture_logs() as logs:
        await handler.process_task(task)
        await handler.process_task(task)
    assert await count(pool) == (7, 1, 7)
    told = [(entry["poll_minute"], entry["poll_error"], entry["import_row"]) for entry in logs]
    assert told == [(25, 1, 25), (0, 0, 0)]


async def test_clean_up_ends_when_the_server_stops(
    pool: Pool, account: CarrierAccount, clock: FakeClock
) -> None:
    await fill(pool, datetime(2020, 1, 1, tzinfo=UTC), 5, account.id)
    task = poll_task(TaskType.DATA_CLEANUP, PollPayload(0, 0, 0))
    task.draining.set()
    await DataCleanupHandler(pool, chunk=1, clock=clock).process_task(task)
    assert await count(pool) == (5, 1, 5)
