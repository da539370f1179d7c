"""Whatever becomes of cards, the shards hold what PostgreSQL says after the commit; also after a rollback."""

from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_account, add_cards

from junhong_cmp.cards.model import Card, CarrierAccount, NewCard
from junhong_cmp.cards.store import delete_card, insert_cards, load_cards, set_polling_enabled
from junhong_cmp.db.pool import Conn
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.card_changes import CardChanges, change_cards
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.tasks import TaskType

CARDDATA, CARDSTATUS = TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS


class OnPurposeError(Exception):
    """Ends a transaction in the middle."""


async def change(plant: Plant, card: Card, sql: str, *values: Any, fail: bool = False) -> None:
    async def work(conn: Conn, changes: CardChanges) -> None:
        changes.touching([card])
        await conn.execute(sql, card.id, *values)
        if fail:
            raise OnPurposeError

    await change_cards(plant.pool, plant.lifecycle, work)


async def waiting_card(plant: Plant, account: CarrierAccount) -> Card:
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.lifecycle.cards_created([card])
    return card


async def places(plant: Plant, account: CarrierAccount) -> int:
    return (await plant.queue.counts([account.id])).cards


@pytest.mark.parametrize("count", [1, 1500])
@pytest.mark.parametrize("fail", [False, True])
async def test_created_cards_wait_after_the_commit_only(
    plant: Plant, account: CarrierAccount, count: int, *, fail: bool
) -> None:
    async def work(conn: Conn, changes: CardChanges) -> None:
        news = [NewCard(iccid=f"898600{number:014d}") for number in range(count)]
        changes.created(await insert_cards(conn, account.id, news))
        assert await places(plant, account) == 0
        if fail:
            raise OnPurposeError

    if fail:
        with pytest.raises(OnPurposeError):
            await change_cards(plant.pool, plant.lifecycle, work)
    else:
        await change_cards(plant.pool, plant.lifecycle, work)
    assert await places(plant, account) == (0 if fail else 2 * count)


CHANGES = {
    "disabled": "UPDATE iot_card SET polling_enabled = false WHERE id = $1",
    "deleted": "UPDATE iot_card SET deleted_at = now() WHERE id = $1",
    "status changed": "UPDATE iot_card SET status = 'cancelled' WHERE id = $1",
}


@pytest.mark.parametrize("sql", CHANGES.values(), ids=CHANGES.keys())
async def test_a_card_that_is_not_polled_any_more_leaves_unless_rolled_back(
    plant: Plant, account: CarrierAccount, sql: str
) -> None:
    await plant.pool.execute(
        "INSERT INTO polling_config (name, priority, card_status, intervals) "
        "VALUES ('x', 1, 'cancelled', $1)",
        {"carddata": {"enabled": False}, "cardstatus": {"enabled": False}},
    )
    await plant.config.refresh()
    card = await waiting_card(plant, account)
    with pytest.raises(OnPurposeError):
        await change(plant, card, sql, fail=True)
    assert await plant.score(card) is not None
    await change(plant, card, sql)
    assert await places(plant, account) == 0


async def test_a_card_enabled_again_waits_and_one_that_moves_does_so_elsewhere(
    plant: Plant, account: CarrierAccount
) -> None:
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    card = await waiting_card(plant, account)
    await change(plant, card, CHANGES["disabled"])
    off = (await load_cards(plant.pool, [card.id]))[card.id]
    await change(plant, off, "UPDATE iot_card SET polling_enabled = true WHERE id = $1")
    assert await plant.score(card) is not None
    move = "UPDATE iot_card SET account_id = $2 WHERE id = $1"
    with pytest.raises(OnPurposeError):
        await change(plant, card, move, other.id, fail=True)
    assert (await places(plant, account), await places(plant, other)) == (2, 0)
    await change(plant, card, move, other.id)
    assert (await places(plant, account), await places(plant, other)) == (0, 2)


async def test_a_card_of_a_faster_rule_comes_forward(plant: Plant, account: CarrierAccount) -> None:
    await plant.pool.execute(
        "INSERT INTO polling_config (name, priority, category, intervals) VALUES ('快', 1, 'vip', $1)",
        {"carddata": {"interval_s": 10, "jitter": 0}},
    )
    await plant.config.refresh()
    (card,) = await add_cards(plant.pool, account, 1)
    now_ms = await plant.queue.now_ms()
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, now_ms + 3_000_000)])
    await change(plant, card, "UPDATE iot_card SET category = 'vip' WHERE id = $1")
    assert now_ms < (await plant.score(card) or 0) <= now_ms + 12_000


async def test_what_comes_and_goes_in_one_transaction_leaves_nothing(
    plant: Plant, account: CarrierAccount
) -> None:
    async def work(conn: Conn, changes: CardChanges) -> None:
        cards = await insert_cards(conn, account.id, [NewCard(iccid="89860000000000000001")])
        changes.created(cards)
        changes.touching(cards)
        await delete_card(conn, cards[0].id)

    await change_cards(plant.pool, plant.lifecycle, work)
    assert await places(plant, account) == 0


async def test_announcements_in_the_wrong_order_end_with_what_is_true(
    plant: Plant, account: CarrierAccount
) -> None:
    card = await waiting_card(plant, account)

    async def disable(conn: Conn, changes: CardChanges) -> None:
        changes.touching([card])
        await set_polling_enabled(conn, card.id, enabled=False)

    await change_cards(plant.pool, plant.lifecycle, disable)
    off = (await load_cards(plant.pool, [card.id]))[card.id]
    await change(plant, off, "UPDATE iot_card SET polling_enabled = true WHERE id = $1")
    await change(plant, off, "SELECT $1::bigint")  # the late word of the one that disabled it
    assert await plant.score(card) is not None


async def test_a_redis_that_is_away_undoes_no_change(
    plant: Plant, account: CarrierAccount, redis_server: EmbeddedRedis
) -> None:
    card = await waiting_card(plant, account)
    await redis_server.stop()
    with capture_logs() as logs:
        await change(plant, card, CHANGES["disabled"])
    assert "分片未能跟上卡的变更，等待对账" in [entry["event"] for entry in logs]
    assert not (await load_cards(plant.pool, [card.id]))[card.id].polling_enabled
    await redis_server.start()


@pytest.mark.parametrize(("found", "waits"), [("cancelled", False), ("active", True)])
async def test_a_status_found_by_a_poll_moves_the_card_in_its_other_shards(
    plant: Plant, account: CarrierAccount, found: str, *, waits: bool
) -> None:
    await plant.pool.execute("DELETE FROM polling_config")
    for status, enabled in (("cancelled", False), ("active", True)):
        await plant.pool.execute(
            "INSERT INTO polling_config (name, priority, card_status, intervals) VALUES ($1, 1, $1, $2)",
            status,
            {
                "carddata": {"interval_s": 60, "enabled": enabled},
                "cardstatus": {"interval_s": 60, "enabled": enabled},
            },
        )
    await plant.pool.execute(
        "INSERT INTO polling_config (name, priority, intervals) VALUES ('其余', 9, $1)",
        {"carddata": {"enabled": not waits, "interval_s": 3600}, "cardstatus": {"interval_s": 3600}},
    )
    await plant.config.refresh()
    card = await waiting_card(plant, account)
    assert (await plant.score(card) is None) is waits
    plant.gateway.status = ("x", found)
    await CardstatusHandler(plant.base).process_task(await plant.task_for(card, CARDSTATUS))
    assert (await plant.score(card) is not None) is waits
    assert (await plant.score(card, CARDSTATUS) is not None) is waits
    assert await plant.totals() == {"done": 1}
