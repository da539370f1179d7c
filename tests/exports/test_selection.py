import asyncpg
import pytest
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.exports.selection import CardSelection, stream_cards


async def test_pages_are_of_one_snapshot(pool: asyncpg.Pool, cards: list[int]) -> None:
    pages = stream_cards(pool, CardSelection("cmcc-1"), page=2)
    seen = [row["id"] for row in await anext(pages)]
    await pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = $1", cards[3])
    seen += [row["id"] async for page in pages for row in page]
    assert seen == cards


async def test_leaving_early_frees_the_connection(pool: asyncpg.Pool, cards: list[int]) -> None:
    pages = stream_cards(pool, CardSelection(), page=1)
    assert [row["id"] for row in await anext(pages)] == cards[:1]
    await pages.aclose()
    assert await pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in tr%'") == 0


@whatever_is_known
@pytest.mark.parametrize("account", ["crowded", None])
async def test_the_first_page_waits_for_no_sort_of_all_cards(
    postgres_dsn: str, statistics: Statistics, account: str | None
) -> None:
    async with watched_crowd(postgres_dsn, statistics) as watch:
        async for _ in stream_cards(watch.pool, CardSelection(account)):
            pass
        assert "iot_card" in str(watch.plans[-1])
        assert "Sort" not in str(watch.plans[-1])
