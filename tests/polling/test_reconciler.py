from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_cards

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import delete_card
from junhong_cmp.polling import keys
from junhong_cmp.polling.reconciler import PollingReconciler
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA


def make_reconciler(plant: Plant) -> PollingReconciler:
    return PollingReconciler(plant.pool, plant.queue, plant.config, PollingSettings(init_page=50))


async def test_what_is_missing_is_added_and_what_is_stale_removed(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 200)
    await plant.lifecycle.cards_created(cards)
    await plant.queue.remove(CARDDATA, account.id, [(card.id, "") for card in cards[:30]])
    async with plant.pool.acquire() as conn:
        await delete_card(conn, cards[100].id)
    await plant.queue.add_many(CARDDATA, account.id, [(10**9, 5)])
    wrong = next(
        s
        for s in plant.queue.shards([account.id])
        if s != plant.queue.shard(CARDDATA, account.id, cards[5].id)
    )
    await plant.redis.zadd(keys.shard_due(wrong), {str(cards[5].id): 5})
    with capture_logs() as logs:
        report = await make_reconciler(plant).reconcile()
    assert (report.cards, report.added, report.removed) == (199, 30, 4)
    assert (logs[-1]["event"], logs[-1]["log_level"]) == ("轮询对账完成", "warning")
    again = await make_reconciler(plant).reconcile()
    assert (again.added, again.removed) == (0, 0)


async def test_claims_are_left_alone(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    claim = await plant.claim_card(card)
    await make_reconciler(plant).reconcile(hasten=True)
    assert await plant.score(card) == claim.claim


async def test_cards_that_follow_their_rule_are_not_moved(plant: Plant, account: CarrierAccount) -> None:
    await plant.lifecycle.cards_created(await add_cards(plant.pool, account, 100))
    assert (await make_reconciler(plant).reconcile(hasten=True)).hastened == 0


async def test_a_card_with_a_due_time_that_never_comes_waits_anew(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    shard = plant.queue.shard(CARDDATA, account.id, card.id)
    await plant.redis.zadd(keys.shard_due(shard), {str(card.id): float("inf")})
    assert (await make_reconciler(plant).reconcile()).removed == 1
    await make_reconciler(plant).reconcile()
    due = await plant.score(card)
    assert due is not None
    assert due - await plant.queue.now_ms() <= 3_600_000
