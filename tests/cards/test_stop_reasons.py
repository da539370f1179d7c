"""Why a card is stopped follows its state at the carrier and what was ordered."""

import pytest
from tests.cards.inventory import add_account, add_cards, hours, reload
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import Card, CardStatus, StopReason
from junhong_cmp.cards.observations import StatusWrite
from junhong_cmp.cards.records import record_status
from junhong_cmp.cards.stop_reasons import find_ordered_stops, stop_reason_after
from junhong_cmp.cards.stop_records import record_resumed, record_stopped
from junhong_cmp.db.pool import Pool

ACTIVE, SUSPENDED, CANCELLED = CardStatus.ACTIVE, CardStatus.SUSPENDED, CardStatus.CANCELLED


@pytest.mark.parametrize(
    ("reason", "status", "ordered", "expected"),
    [
        ("none", SUSPENDED, None, "carrier"),
        ("none", SUSPENDED, "over_plan", "over_plan"),
        ("manual", SUSPENDED, "over_plan", "manual"),
        ("over_plan", SUSPENDED, None, "over_plan"),
        ("over_plan", ACTIVE, "over_plan", "none"),
        ("violation", CardStatus.TESTING, None, "none"),
        ("manual", CardStatus.UNKNOWN, None, "manual"),
        ("over_plan", CANCELLED, None, "over_plan"),
    ],
)
def test_the_reason_follows_the_state(
    reason: str, status: CardStatus, ordered: str | None, expected: str
) -> None:
    found = None if ordered is None else StopReason(ordered)
    assert stop_reason_after(StopReason(reason), status, found) == expected


async def report(pool: Pool, card: Card, status: CardStatus, hour: float) -> Card:
    write = StatusWrite(
        card_id=card.id, account_id=card.account_id, raw="x", status=status, observed_at=hours(hour)
    )
    async with pool.acquire() as conn:
        await record_status(conn, [write])
    return await reload(pool, card)


async def operate(pool: Pool, card: Card, kind: str, reason: str, status: str, error: str | None) -> None:
    await pool.execute(
        "INSERT INTO card_operation (card_id, kind, reason, request_id, status, error, sent_at)"
        " VALUES ($1, $2, $3, gen_random_uuid(), $4, $5, now())",
        card.id,
        kind,
        reason,
        status,
        error,
    )


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([], "carrier"),
        ([("stop", "over_plan", "sent", None)], "over_plan"),
        ([("stop", "over_plan", "pending", None)], "over_plan"),
        ([("stop", "over_plan", "done", None)], "over_plan"),
        ([("stop", "over_plan", "done", "执行前卡已处于目标状态")], "carrier"),
        ([("stop", "over_plan", "failed", "x")], "carrier"),
        ([("stop", "over_plan", "done", None), ("resume", "cycle_rollover", "done", None)], "carrier"),
    ],
)
async def test_a_stop_of_ours_is_known_again_in_the_carriers_report(
    pool: Pool, operations: list[tuple[str, str, str, str | None]], expected: str
) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    for operation in operations:
        await operate(pool, card, *operation)
    assert (await report(pool, card, SUSPENDED, 1)).stop_reason == expected
    assert (await report(pool, card, ACTIVE, 2)).stop_reason is StopReason.NONE


async def test_stops_and_resumes_leave_a_history_and_spare_the_cancelled(pool: Pool) -> None:
    card, cancelled = await add_cards(pool, await add_account(pool), 2)
    await report(pool, card, ACTIVE, 1)
    await report(pool, cancelled, CANCELLED, 1)
    async with pool.acquire() as conn:
        for one in (card, cancelled):
            await record_stopped(conn, one.id, StopReason.POOL, hours(2))
            await record_stopped(conn, one.id, StopReason.POOL, hours(3))
        stopped = await reload(pool, card)
        await record_resumed(conn, card.id, hours(4))
    assert (stopped.status, stopped.stop_reason, stopped.status_changed_at) == (
        SUSPENDED,
        StopReason.POOL,
        hours(2),
    )
    resumed = await reload(pool, card)
    assert (resumed.status, resumed.stop_reason) == (ACTIVE, StopReason.NONE)
    assert (await reload(pool, cancelled)).status is CANCELLED
    rows = await pool.fetch(
        "SELECT new_status FROM card_status_history WHERE card_id = $1 ORDER BY id", card.id
    )
    assert [row["new_status"] for row in rows] == ["active", "suspended", "active"]


@whatever_is_known
async def test_no_operations_of_other_cards_are_read(postgres_dsn: str, statistics: Statistics) -> None:
    cards = range(5000, 5100)
    async with watched_crowd(postgres_dsn, statistics, "card_operation") as watch:
        async with watch.pool.acquire() as conn:
            assert await find_ordered_stops(conn, cards) == dict.fromkeys(cards, StopReason.OVER_PLAN)
        watch.assert_frugal(200)
