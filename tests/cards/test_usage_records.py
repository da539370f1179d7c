import asyncio
from datetime import date, datetime, timedelta

import pytest
from tests.cards.inventory import NOON, add_account, add_cards, hours, reload
from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import Recorded, RecordOutcome, UsageWrite
from junhong_cmp.cards.store import delete_card
from junhong_cmp.cards.usage_records import record_usage
from junhong_cmp.db.pool import Pool


@pytest.fixture
async def card(pool: Pool) -> Card:
    return (await add_cards(pool, await add_account(pool), 1))[0]


def usage(card: Card, reading_kb: int, at: datetime, *, observed_at: datetime | None = None) -> UsageWrite:
    return UsageWrite(
        card_id=card.id,
        account_id=card.account_id,
        reading_kb=reading_kb,
        reading_at=at,
        observed_at=observed_at or at,
    )


async def put(pool: Pool, *writes: UsageWrite) -> list[Recorded]:
    async with pool.acquire() as conn:
        return await record_usage(conn, writes)


async def daily(pool: Pool) -> dict[date, int]:
    return {
        row["day"]: row["used_kb"] for row in await pool.fetch("SELECT day, used_kb FROM card_usage_daily")
    }


async def cycles(pool: Pool) -> dict[str, tuple[int, bool]]:
    rows = await pool.fetch("SELECT cycle, used_kb, closed FROM card_usage_cycle")
    return {row["cycle"]: (row["used_kb"], row["closed"]) for row in rows}


async def test_readings_add_up_by_day_and_by_cycle(pool: Pool, card: Card) -> None:
    readings = [(5000, NOON), (5200, hours(2)), (5200, hours(3)), (5500, hours(13)), (40, hours(24 * 22))]
    deltas = [(await put(pool, usage(card, kb, at)))[0].delta_kb for kb, at in readings]
    assert deltas == [0, 200, 0, 300, 40]
    assert await daily(pool) == {date(2026, 3, 10): 200, date(2026, 3, 11): 300, date(2026, 4, 1): 40}
    assert await cycles(pool) == {"2026-03-01": (5500, True), "2026-04-01": (40, False)}
    now = await reload(pool, card)
    assert (now.cycle, now.cycle_used_kb, now.last_reading_kb) == ("2026-04-01", 40, 40)
    assert now.last_reading_at == now.carddata.succeeded_at == now.carddata.attempted_at == readings[-1][1]


async def test_a_total_told_late_is_added_to_its_own_cycle_and_day(pool: Pool, card: Card) -> None:
    last_day, next_month = hours(24 * 21 + 11), hours(24 * 22)
    readings = [(5000, NOON), (40, next_month), (5600, last_day), (41, next_month + timedelta(hours=1))]
    for number, (kb, at) in enumerate(readings):
        await put(pool, usage(card, kb, at, observed_at=next_month + timedelta(hours=number)))
    assert await daily(pool) == {date(2026, 3, 31): 600, date(2026, 4, 1): 40 + 1}
    assert await cycles(pool) == {"2026-03-01": (5600, True), "2026-04-01": (41, False)}
    now = await reload(pool, card)
    assert (now.cycle, now.cycle_used_kb, now.last_reading_kb) == ("2026-04-01", 41, 41)


async def test_the_accounts_billing_day_decides_the_cycle(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool, "cucc", billing_day=27), 1)
    assert (await put(pool, usage(card, 10, NOON)))[0].changed
    assert not (await put(pool, usage(card, 11, hours(1))))[0].changed
    assert await cycles(pool) == {"2026-02-27": (11, False)}


async def test_a_dip_is_kept_as_an_anomaly_and_recovers(pool: Pool, card: Card) -> None:
    results = [await put(pool, usage(card, kb, hours(at))) for at, kb in enumerate((5000, 0, 5010))]
    assert [result[0].delta_kb for result in results] == [0, 0, 10]
    (anomaly,) = await pool.fetch("SELECT kind, expected_kb, reading_kb, reading_at FROM usage_anomaly")
    assert tuple(anomaly) == ("rollback", 5000, 0, hours(1))


async def test_an_impossible_reading_is_kept_but_not_billed(pool: Pool, card: Card) -> None:
    await put(pool, usage(card, 5000, NOON))
    write = usage(card, 10**15, hours(1))
    assert (await put(pool, write))[0].delta_kb == 0
    await put(pool, write)
    now = await reload(pool, card)
    assert (now.cycle_used_kb, now.last_reading_kb, now.carddata.succeeded_at) == (5000, 5000, hours(1))
    assert [row["kind"] for row in await pool.fetch("SELECT kind FROM usage_anomaly")] == ["jump"]


async def test_an_impossible_first_reading_is_no_baseline(pool: Pool, card: Card) -> None:
    (told,) = await put(pool, usage(card, 10**15, NOON))
    assert (told.delta_kb, told.cycle, told.used_kb) == (0, None, 0), "nothing to stop a card for"
    assert await cycles(pool) == {}
    assert [row["kind"] for row in await pool.fetch("SELECT kind FROM usage_anomaly")] == ["jump"]
    await put(pool, usage(card, 100, hours(1)))
    await put(pool, usage(card, 130, hours(2)))
    assert await cycles(pool) == {"2026-03-01": (130, False)}
    assert await daily(pool) == {date(2026, 3, 10): 30}


async def test_writing_a_batch_again_counts_nothing_twice(pool: Pool, card: Card) -> None:
    await put(pool, usage(card, 100, NOON))
    write = usage(card, 150, hours(1))
    for _ in range(3):
        await put(pool, write)
    assert await daily(pool) == {date(2026, 3, 10): 50}
    assert await cycles(pool) == {"2026-03-01": (150, False)}


async def test_an_older_observation_is_superseded_and_an_older_reading_counts_nothing(
    pool: Pool, card: Card
) -> None:
    await put(pool, usage(card, 100, hours(2)))
    assert await put(pool, usage(card, 900, hours(1))) == [Recorded(outcome=RecordOutcome.SUPERSEDED)]
    (stale,) = await put(pool, usage(card, 90, hours(1), observed_at=hours(3)))
    assert (stale.outcome, stale.delta_kb) == (RecordOutcome.RECORDED, 0)
    now = await reload(pool, card)
    assert (now.last_reading_at, now.carddata.succeeded_at) == (hours(2), hours(3))


async def test_a_carrier_clock_ahead_does_not_block_later_readings(pool: Pool, card: Card) -> None:
    await put(pool, usage(card, 100, NOON + timedelta(days=400), observed_at=NOON))
    assert (await put(pool, usage(card, 130, hours(1))))[0].delta_kb == 30


async def test_deleted_and_moved_cards_are_gone(pool: Pool) -> None:
    first, second = await add_cards(pool, await add_account(pool), 2)
    other = await add_account(pool, "other")
    await pool.execute("UPDATE iot_card SET account_id = $1 WHERE id = $2", other.id, second.id)
    async with pool.acquire() as conn:
        await delete_card(conn, first.id)
    results = await put(pool, usage(first, 1, NOON), usage(second, 1, NOON))
    assert [result.outcome for result in results] == [RecordOutcome.GONE] * 2
    assert await cycles(pool) == {}


async def test_a_negative_reading_writes_nothing_of_its_batch(pool: Pool) -> None:
    first, second = await add_cards(pool, await add_account(pool), 2)
    with pytest.raises(ValueError, match="-1"):
        await put(pool, usage(first, 5, NOON), usage(second, -1, NOON))
    assert (await reload(pool, first)).cycle is None
    assert await cycles(pool) == {}


async def test_concurrent_writers_lose_and_double_nothing(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool), 20)
    await put(pool, *(usage(card, 1000, NOON) for card in cards))

    async def write(offset: int) -> None:
        for step in range(10):
            at = hours(1 + step / 100)
            batch = [usage(card, 1000 + step * 10, at) for card in cards]
            await put(pool, *(batch[offset:] + batch[:offset]))

    await asyncio.gather(*(write(offset) for offset in (0, 7, 13)))
    assert await pool.fetchval("SELECT sum(used_kb) FROM card_usage_daily") == 90 * len(cards)
    assert await pool.fetchval("SELECT sum(used_kb) FROM card_usage_cycle") == 1090 * len(cards)


async def test_five_hundred_cards_take_as_many_statements_as_two(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool), 500)
    statements: list[str] = []
    counts = []
    async with pool.acquire() as conn:
        with conn.query_logger(lambda record: statements.append(record.query)):
            for step, count in enumerate((2, 500, 2, 500)):
                statements.clear()
                await record_usage(
                    conn, [usage(card, 1000 * step + card.id, hours(step)) for card in cards[:count]]
                )
                counts.append(len(statements))
    assert counts[1] == counts[0]
    assert counts[3] == counts[2]


@whatever_is_known
async def test_a_batch_reads_no_cards_but_its_own(postgres_dsn: str, statistics: Statistics) -> None:
    async with (
        watched_crowd(postgres_dsn, statistics, "card_usage_cycle", "card_usage_daily") as watch,
        watch.pool.acquire() as conn,
    ):
        writes = [UsageWrite(each, CROWDED, 1200, hours(1), hours(1)) for each in range(5000, 5200, 2)]
        assert len(await record_usage(conn, writes)) == 100
        watch.assert_frugal(300)
