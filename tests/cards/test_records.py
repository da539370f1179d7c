import asyncio

import pytest
from tests.cards.inventory import add_account, add_cards, hours, reload
from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import Card, CardStatus, PollTopic, RealNameStatus
from junhong_cmp.cards.observations import FailureWrite, RealNameWrite, Recorded, RecordOutcome, StatusWrite
from junhong_cmp.cards.records import record_failure, record_realname, record_status
from junhong_cmp.cards.store import delete_card
from junhong_cmp.db.pool import Pool

GONE = Recorded(outcome=RecordOutcome.GONE)
SUPERSEDED = Recorded(outcome=RecordOutcome.SUPERSEDED)


@pytest.fixture
async def cards(pool: Pool) -> list[Card]:
    return await add_cards(pool, await add_account(pool), 3)


def status(
    card: Card, to: CardStatus, at: float, *, raw: str = "2", account_id: int | None = None
) -> StatusWrite:
    return StatusWrite(
        card_id=card.id, account_id=account_id or card.account_id, raw=raw, status=to, observed_at=hours(at)
    )


def failure(card: Card, at: float, *, not_found: bool = False) -> FailureWrite:
    return FailureWrite(
        card_id=card.id, account_id=card.account_id, observed_at=hours(at), not_found=not_found
    )


async def put_status(pool: Pool, *writes: StatusWrite) -> list[Recorded]:
    async with pool.acquire() as conn:
        return await record_status(conn, writes)


async def put_failures(pool: Pool, *writes: FailureWrite, orphan_after: int = 3) -> list[Recorded]:
    async with pool.acquire() as conn:
        return await record_failure(conn, PollTopic.CARDSTATUS, writes, orphan_after=orphan_after)


async def history(pool: Pool, card: Card) -> list[tuple[object, ...]]:
    rows = await pool.fetch(
        "SELECT old_status, new_status, old_raw, new_raw FROM card_status_history"
        " WHERE card_id = $1 ORDER BY id",
        card.id,
    )
    return [tuple(row) for row in rows]


async def test_a_status_is_recorded_with_its_history(pool: Pool, cards: list[Card]) -> None:
    card = cards[0]
    assert (await put_status(pool, status(card, CardStatus.ACTIVE, 1)))[0].changed
    assert not (await put_status(pool, status(card, CardStatus.ACTIVE, 2)))[0].changed
    now = await reload(pool, card)
    assert (now.status, now.carrier_status_raw, now.status_changed_at) == (CardStatus.ACTIVE, "2", hours(1))
    assert (now.cardstatus.attempted_at, now.cardstatus.succeeded_at) == (hours(2), hours(2))
    assert now.version == card.version + 1
    assert await history(pool, card) == [("unknown", "active", None, "2")]


async def test_another_raw_code_of_the_same_status_is_history_too(pool: Pool, cards: list[Card]) -> None:
    await put_status(pool, status(cards[0], CardStatus.UNKNOWN, 1, raw="77"))
    assert await history(pool, cards[0]) == [("unknown", "unknown", None, "77")]


async def test_an_older_observation_never_overwrites_a_newer(pool: Pool, cards: list[Card]) -> None:
    await put_status(pool, status(cards[0], CardStatus.SUSPENDED, 2))
    assert await put_status(pool, status(cards[0], CardStatus.ACTIVE, 1)) == [SUPERSEDED]
    assert (await reload(pool, cards[0])).status is CardStatus.SUSPENDED


async def test_in_one_batch_the_newest_of_a_card_counts(pool: Pool, cards: list[Card]) -> None:
    first, second, _ = cards
    results = await put_status(
        pool,
        status(first, CardStatus.ACTIVE, 3),
        status(second, CardStatus.READY, 1),
        status(first, CardStatus.SUSPENDED, 2),
    )
    assert [result.outcome for result in results] == ["recorded", "recorded", "superseded"]
    assert (await reload(pool, first)).status is CardStatus.ACTIVE
    assert (await reload(pool, second)).status is CardStatus.READY


async def test_deleted_moved_and_unknown_cards_are_gone(pool: Pool, cards: list[Card]) -> None:
    first, second, third = cards
    other = await add_account(pool, "other")
    async with pool.acquire() as conn:
        await delete_card(conn, first.id)
    await pool.execute("DELETE FROM iot_card WHERE id = $1", third.id)
    results = await put_status(
        pool,
        status(first, CardStatus.ACTIVE, 1),
        status(second, CardStatus.ACTIVE, 1, account_id=other.id),
        status(third, CardStatus.ACTIVE, 1),
    )
    assert results == [GONE] * 3
    assert (await reload(pool, second)).status is CardStatus.UNKNOWN


async def test_writing_again_changes_nothing(pool: Pool, cards: list[Card]) -> None:
    write = status(cards[0], CardStatus.ACTIVE, 1)
    await put_status(pool, write)
    before = await reload(pool, cards[0])
    await put_status(pool, write)
    assert await reload(pool, cards[0]) == before
    assert len(await history(pool, cards[0])) == 1


async def test_real_names_can_be_verified_and_cleared_again(pool: Pool, cards: list[Card]) -> None:
    card = cards[0]
    for at, to in ((1, RealNameStatus.VERIFIED), (2, RealNameStatus.UNVERIFIED)):
        write = RealNameWrite(card_id=card.id, account_id=card.account_id, status=to, observed_at=hours(at))
        async with pool.acquire() as conn:
            assert (await record_realname(conn, [write, write]))[1].changed
        now = await reload(pool, card)
        assert now.real_name_status is to
        assert now.realname.succeeded_at == hours(at)
        assert now.cardstatus.succeeded_at is None


async def test_failures_count_up_and_a_success_clears_them(pool: Pool, cards: list[Card]) -> None:
    card = cards[0]
    assert [(await put_failures(pool, failure(card, at)))[0].fail_count for at in (1, 2)] == [1, 2]
    now = await reload(pool, card)
    assert (now.cardstatus.attempted_at, now.cardstatus.succeeded_at) == (hours(2), None)
    assert now.carddata.fail_count == 0
    await put_status(pool, status(card, CardStatus.ACTIVE, 3))
    assert (await reload(pool, card)).cardstatus.fail_count == 0


async def test_a_failure_is_counted_once(pool: Pool, cards: list[Card]) -> None:
    await put_failures(pool, failure(cards[0], 1))
    assert await put_failures(pool, failure(cards[0], 1)) == [SUPERSEDED]
    assert (await reload(pool, cards[0])).cardstatus.fail_count == 1


async def test_a_late_success_keeps_the_failures_after_it(pool: Pool, cards: list[Card]) -> None:
    await put_failures(pool, failure(cards[0], 5))
    await put_status(pool, status(cards[0], CardStatus.ACTIVE, 4))
    now = await reload(pool, cards[0])
    assert (now.status, now.cardstatus.fail_count) == (CardStatus.ACTIVE, 1)
    assert (now.cardstatus.attempted_at, now.cardstatus.succeeded_at) == (hours(5), hours(4))


async def test_a_card_denied_again_and_again_becomes_an_orphan_until_it_is_known(
    pool: Pool, cards: list[Card]
) -> None:
    card = cards[0]
    await put_failures(pool, failure(card, 0.5))
    changed = [
        (await put_failures(pool, failure(card, at, not_found=True)))[0].changed for at in (1, 2, 3, 4)
    ]
    assert changed == [False, False, True, False]
    assert (await reload(pool, card)).orphan
    assert (await put_status(pool, status(card, CardStatus.UNKNOWN, 5)))[0].changed
    now = await reload(pool, card)
    assert (now.orphan, now.not_found_count) == (False, 0)


async def test_batches_that_share_cards_in_any_order_never_deadlock(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool, "many"), 60)

    async def write(step: int) -> None:
        for at in range(8):
            chosen = cards[::step] + cards[1::2]
            unique = list({card.id: card for card in chosen}.values())
            await put_status(pool, *(status(card, CardStatus.ACTIVE, at * 10 + abs(step)) for card in unique))

    await asyncio.gather(*(write(step) for step in (1, -1, 3, -2)))
    assert {card.status for card in [await reload(pool, card) for card in cards]} == {CardStatus.ACTIVE}


@whatever_is_known
async def test_a_batch_reads_no_cards_but_its_own(postgres_dsn: str, statistics: Statistics) -> None:
    ids = range(5000, 5200, 2)
    async with (
        watched_crowd(postgres_dsn, statistics, "card_operation") as watch,
        watch.pool.acquire() as conn,
    ):
        stopped = [StatusWrite(each, CROWDED, "4", CardStatus.SUSPENDED, hours(1)) for each in ids]
        assert {result.changed for result in await record_status(conn, stopped)} == {False, True}
        verified = [RealNameWrite(each, CROWDED, RealNameStatus.VERIFIED, hours(1)) for each in ids]
        assert len(await record_realname(conn, verified)) == 100
        failed = [FailureWrite(each, CROWDED, hours(2)) for each in ids]
        assert len(await record_failure(conn, PollTopic.CARDDATA, failed)) == 100
        watch.assert_frugal(300)
