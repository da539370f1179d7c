"""Whatever happens to Redis or PostgreSQL behind our back, every card ends up in its place again."""

from typing import Any

import pytest
from tests.polling.plant import Plant, add_account, add_cards

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.polling import keys
from junhong_cmp.polling.initializer import PollingInitializer
from junhong_cmp.polling.reconciler import PollingReconciler, ReconcileReport
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

HOUR_MS = 3_600_000
SETTINGS = PollingSettings(init_page=50)
Places = dict[tuple[ShardId, int], int]


async def initialise(plant: Plant) -> None:
    await PollingInitializer(plant.pool, plant.queue, plant.config, settings=SETTINGS).initialise()


async def reconcile(plant: Plant) -> ReconcileReport:
    return await PollingReconciler(plant.pool, plant.queue, plant.config, SETTINGS).reconcile()


async def places(plant: Plant) -> Places:
    found: Places = {}
    for shard in plant.queue.shards(plant.config.snapshot.accounts):
        pairs: list[tuple[bytes, float]] = await plant.redis.execute_command(
            "ZRANGE", keys.shard_due(shard), 0, -1, "WITHSCORES", withscores=True
        )
        found |= {(shard, int(card)): int(score) for card, score in pairs}
    return found


def phases(found: Places) -> dict[tuple[ShardId, int], int]:
    return {place: due % HOUR_MS for place, due in found.items()}


async def wanted(plant: Plant) -> set[tuple[ShardId, int]]:
    """Where PostgreSQL says that cards wait: told anew, by other means than the code under test."""
    rows = await plant.pool.fetch(
        "SELECT id, account_id, real_name_required FROM iot_card WHERE polling_enabled AND deleted_at IS NULL"
    )
    return {
        (plant.queue.shard(kind, row["account_id"], row["id"]), row["id"])
        for row in rows
        for kind in POLLING_TASK_TYPES
        if kind is not TaskType.POLLING_REALNAME or row["real_name_required"]
    }


@pytest.fixture
async def cards(plant: Plant, account: CarrierAccount) -> list[Card]:
    cards = await add_cards(plant.pool, account, 200)
    cards += await add_cards(plant.pool, account, 50, first=500, real_name_required=True)
    await initialise(plant)
    return cards


async def test_a_flushed_redis(plant: Plant, cards: list[Card]) -> None:
    before = phases(await places(plant))
    await plant.redis.flushall()
    report = await reconcile(plant)
    assert (report.cards, report.added, report.removed) == (len(cards), 2 * 200 + 3 * 50, 0)
    assert phases(await places(plant)) == before


async def test_a_deleted_shard(plant: Plant, account: CarrierAccount, cards: list[Card]) -> None:
    before = phases(await places(plant))
    shard = plant.queue.shards([account.id])[3]
    await plant.redis.delete(keys.shard_due(shard))
    report = await reconcile(plant)
    assert report.added == sum(place == shard for place, _ in before)
    assert phases(await places(plant)) == before


async def test_a_redis_rolled_back(plant: Plant, account: CarrierAccount, cards: list[Card]) -> None:
    names = [keys.shard_due(shard) for shard in plant.queue.shards([account.id])]
    old: dict[str, bytes] = {name: await plant.redis.dump(name) for name in names}
    gone, fresh = cards[:40], await add_cards(plant.pool, account, 30, first=900)
    await plant.pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = ANY ($1)", ids(gone))
    await plant.lifecycle.cards_deleted(gone)
    await plant.lifecycle.cards_created(fresh)
    right = set(await places(plant))
    for name, content in old.items():
        if content is None:
            await plant.redis.delete(name)
        else:
            await plant.redis.restore(name, 0, content, replace=True)
    assert set(await places(plant)) != right
    report = await reconcile(plant)
    assert (report.added, report.removed) == (2 * 30, 2 * 40)
    assert set(await places(plant)) == right == await wanted(plant)


async def test_an_initialisation_interrupted_at_any_page(plant: Plant, account: CarrierAccount) -> None:
    await add_cards(plant.pool, account, 500)
    initializer = PollingInitializer(plant.pool, plant.queue, plant.config, settings=SETTINGS)
    for _ in range(5):
        await initializer.start()
        await initializer.stop()
    await initialise(plant)
    assert set(await places(plant)) == await wanted(plant)


_BEHIND_OUR_BACK = {
    "switched off": "UPDATE iot_card SET polling_enabled = false WHERE id % 7 = 0",
    "deleted": "UPDATE iot_card SET deleted_at = now() WHERE id % 5 = 0",
    "erased": "DELETE FROM iot_card WHERE id % 3 = 0",
    "moved": "UPDATE iot_card SET account_id = (SELECT max(id) FROM carrier_account) WHERE id % 4 = 0",
    "real name asked for": "UPDATE iot_card SET real_name_required = true WHERE id % 2 = 0",
    "real name no longer asked for": "UPDATE iot_card SET real_name_required = false",
    "inserted": """
        INSERT INTO iot_card (account_id, iccid, iccid19)
        SELECT account_id, '898601' || right(iccid, 14), left('898601' || right(iccid, 14), 19) FROM iot_card
    """,
}


@pytest.mark.parametrize("change", _BEHIND_OUR_BACK.values(), ids=_BEHIND_OUR_BACK.keys())
async def test_cards_changed_behind_our_back(plant: Plant, cards: list[Card], change: str) -> None:
    await add_account(plant.pool, "other")
    await plant.config.refresh()
    await plant.pool.execute(change)
    before, right = set(await places(plant)), await wanted(plant)
    assert before != right
    report = await reconcile(plant)
    assert (report.added, report.removed) == (len(right - before), len(before - right))
    assert set(await places(plant)) == right
    again = await reconcile(plant)
    assert (again.added, again.removed, again.searched) == (0, 0, 0)


async def test_only_what_holds_too_much_is_looked_through(
    plant: Plant, account: CarrierAccount, cards: list[Card]
) -> None:
    shard = plant.queue.shards([account.id])[0]
    await plant.redis.zadd(keys.shard_due(shard), {"1000000": 5, "1000001": 5})
    report = await reconcile(plant)
    assert (report.removed, report.searched) == (2, 1)


async def test_a_foreign_value_instead_of_a_shard_stops_no_other(
    plant: Plant, account: CarrierAccount, cards: list[Card]
) -> None:
    broken, *others = plant.queue.shards([account.id])
    for shard in (broken, *others):
        await plant.redis.delete(keys.shard_due(shard))
    await plant.redis.set(keys.shard_due(broken), "foreign")
    report = await reconcile(plant)
    assert report.added == len([shard for shard, _ in await wanted(plant) if shard != broken])


def ids(cards: list[Card]) -> list[Any]:
    return [card.id for card in cards]
