import itertools
from datetime import UTC, datetime

from tests.crowd import CROWDED, CYCLE, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.alert_store import find_alert_candidates
from junhong_cmp.cards.alerts import AlertKind, AlertRule
from junhong_cmp.cards.usage import CycleId

NOW = datetime(2026, 12, 31, tzinfo=UTC)
KINDS = [AlertKind.THRESHOLD, AlertKind.PLAN_USAGE, AlertKind.STALE_DATA, AlertKind.EXPIRY]


def rule(kind: AlertKind) -> AlertRule:
    return AlertRule(
        id=1, name="r", kind=kind, account_id=None, category=None, level="warning", threshold=0.0
    )


@whatever_is_known
async def test_a_page_reads_no_more_cards_and_alerts_than_it_holds(
    postgres_dsn: str, statistics: Statistics
) -> None:
    async with watched_crowd(postgres_dsn, statistics, "alert_event") as watch:
        for kind, after in itertools.product(KINDS, (0, 10_000)):
            place = (CROWDED, CycleId(CYCLE), after)
            cards = await find_alert_candidates(watch.pool, rule(kind), place, NOW, 100)
            assert [card.id for card in cards] == list(range(after + 2, after + 202, 2))
            watch.assert_frugal(200)
