"""Ten thousand cards, and the carrier's own record held against the database."""

from tests.scenarios.platform import INITIALISED, Platform

from junhong_cmp.gateway.simulator_cards import expected_usage_kb

CARDS = 10_000
INTERVAL_S = 20


async def test_every_card_is_initialised_and_polled_and_none_by_two_at_once(platform: Platform) -> None:
    await platform.poll_usage_every(INTERVAL_S)
    cards = await platform.issue_cards(CARDS)
    worker = await platform.join("all")
    done = await worker.wait_for(INITIALISED, timeout=60)
    assert done["cards"] == CARDS
    await platform.all_polled(cards, limit_s=120)
    assert await worker.stop() == 0

    assert await platform.members_of_shards() == {str(card.id): 1 for card in cards}
    log = await platform.carrier_log()
    assert log.overlaps == ()
    assert set(log.outcomes) == {"ok"}
    assert log.cards("usage") == {card.iccid for card in cards}
    assert await platform.pool.fetchval("SELECT sum(done) FROM poll_minute") == sum(log.calls.values())
    for row in await platform.pool.fetch("SELECT iccid, last_reading_kb, last_reading_at FROM iot_card"):
        expected = expected_usage_kb(row["iccid"], row["last_reading_at"], seed=0)
        assert row["last_reading_kb"] == expected, row["iccid"]
