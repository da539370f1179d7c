from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.usage import CycleId
from junhong_cmp.cards.usage_rollup import (
    RollupWindow,
    find_differing,
    find_page_end,
    find_uncovered,
    mend_cycles,
)


@whatever_is_known
async def test_a_page_reads_no_cards_but_its_own(postgres_dsn: str, statistics: Statistics) -> None:
    windows = [RollupWindow(CROWDED, CycleId("2026-02-01"))]
    async with watched_crowd(postgres_dsn, statistics, "card_usage_cycle", "card_usage_daily") as watch:
        assert await find_page_end(watch.pool, 5000, 100) == 5100
        watch.assert_frugal(100)
        assert await find_differing(watch.pool, 5000, 5100) == []
        assert await find_uncovered(watch.pool, 5000, 5100, windows) == []
        async with watch.pool.acquire() as conn, conn.transaction():
            assert await mend_cycles(conn, list(range(5000, 5100))) == 0
        watch.assert_frugal(300)
