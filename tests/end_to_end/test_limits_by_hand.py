"""An operator's limits on running workers: no sweep and no poll is waited for."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tests.cli.console import Console
from tests.scenarios.platform import Platform
from tests.waiting import wait_until

from junhong_cmp.cards.usage import billing_cycle


async def test_a_card_stops_at_its_new_threshold_and_comes_back_when_it_is_raised(platform: Platform) -> None:
    (card,) = await platform.issue_cards(1)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await platform.pool.execute("UPDATE carrier_account SET protect_enabled = true, operation_min_gap_s = 0")
    await platform.pool.execute(
        "UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = 40000", cycle
    )
    junhong = Console("card", platform.redis_url, platform.postgres_dsn)
    await platform.join()

    async def is_stopped_for(reason: str) -> bool:
        return bool(await platform.pool.fetchval("SELECT stop_reason = $1 FROM iot_card", reason))

    assert "其中 1 张已达停机条件" in await junhong("set", card.iccid, "--threshold", "30MB")
    await wait_until(lambda: is_stopped_for("threshold"), timeout=30, description="the card is stopped")
    assert "其中 1 张因用量停机、不再超限" in await junhong("set", card.iccid, "--threshold", "40MB")
    await wait_until(lambda: is_stopped_for("none"), timeout=30, description="the card is back")
    orders = await platform.pool.fetch("SELECT kind, reason, status FROM card_operation ORDER BY id")
    assert [tuple(order) for order in orders] == [
        ("stop", "threshold", "done"),
        ("resume", "limit_raised", "done"),
    ]
