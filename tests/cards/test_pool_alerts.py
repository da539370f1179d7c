from datetime import UTC, datetime

from tests.crowd import CROWDED, CYCLE, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.alerts import AlertKind, AlertRule
from junhong_cmp.cards.pool_alerts import raise_pool_alerts
from junhong_cmp.cards.usage import CycleId

RULE = AlertRule(
    id=2,
    name="r",
    kind=AlertKind.POOL_USAGE,
    account_id=None,
    category=None,
    level="warning",
    threshold=0.5,
)
SPOKEN_FOR = """
    INSERT INTO alert_event (rule_id, card_id, cycle, level)
    SELECT 2, id, $1, 'warning' FROM iot_card WHERE pool_id = 1 ORDER BY id LIMIT 1
"""


@whatever_is_known
async def test_the_heaviest_cards_are_found_without_reading_all_alerts(
    postgres_dsn: str, statistics: Statistics
) -> None:
    """Ten pools with a thousand cards each; of one, the first card has spoken for another pool already."""
    async with watched_crowd(postgres_dsn, statistics, "alert_event") as watch:
        await watch.pool.execute(SPOKEN_FOR, CYCLE)
        watch.plans.clear()
        async with watch.pool.acquire() as conn:
            raised = await raise_pool_alerts(conn, RULE, CROWDED, CycleId(CYCLE), datetime.now(UTC))
        assert raised == 10
        watch.assert_frugal(12_000)
        rows = await watch.pool.fetch(
            "SELECT card_id FROM alert_event WHERE pool_id IS NOT NULL ORDER BY pool_id"
        )
    assert [row["card_id"] for row in rows] == [40, *range(2, 20, 2)]
