from datetime import UTC, datetime

from tests.crowd import CROWDED, CYCLE, ROWS, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.polling.sweep_queries import CANDIDATES, SweepCause

NOW = datetime(2026, 4, 10, tzinfo=UTC)
FOUND = {SweepCause.USAGE: 5000, SweepCause.POOL: 5000, SweepCause.ROLLOVER: 5000, SweepCause.EXPIRY: 5000}


@whatever_is_known
async def test_a_look_goes_through_each_card_and_operation_once_or_so(
    postgres_dsn: str, statistics: Statistics
) -> None:
    async with watched_crowd(postgres_dsn, statistics, "card_operation") as watch:
        for cause, look in CANDIDATES.items():
            found = await watch.pool.fetch(look, CROWDED, 0, CYCLE, NOW, ["active"], 10_000, ROWS)
            assert len(found) == FOUND.get(cause, 0), cause
            watch.assert_frugal(3 * ROWS)
