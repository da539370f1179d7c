from datetime import timedelta

from tests.polling.plant import EPOCH, Plant, add_cards

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.polling.poll_now import NowReport, PollNow
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

CARDDATA = TaskType.POLLING_CARDDATA


async def test_waiting_and_missing_cards_are_due_and_claimed_ones_left_alone(
    plant: Plant, account: CarrierAccount
) -> None:
    waiting, missing, claimed, off = await add_cards(plant.pool, account, 4)
    await plant.lifecycle.cards_created([waiting])
    claim = await plant.claim_card(claimed)
    await plant.pool.execute("UPDATE iot_card SET polling_enabled = false WHERE id = $1", off.id)
    cards = await load_cards(plant.pool, [waiting.id, missing.id, claimed.id, off.id])
    later = await plant.queue.now_ms() + 10_000_000
    shard = plant.queue.shard(CARDDATA, account.id, waiting.id)
    await plant.queue.remove(CARDDATA, account.id, [(waiting.id, "")])
    await plant.queue.add_many(CARDDATA, account.id, [(waiting.id, later)])
    now = PollNow(plant.queue, plant.config.snapshot, (CARDDATA,))
    await now.hasten(list(cards.values()))
    assert now.report == NowReport(hastened=2, under_way=1, not_polled=1)
    assert await plant.score(claimed) == claim.claim
    await plant.queue.seal(EPOCH, [shard])
    batch = await plant.queue.claim(shard, epoch=EPOCH, limit=9, visibility=timedelta(minutes=1))
    assert waiting.id in [found.card_id for found in batch.claims]


async def test_all_types_of_a_card(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 1, real_name_required=True)
    now = PollNow(plant.queue, plant.config.snapshot, POLLING_TASK_TYPES)
    await now.hasten(cards)
    assert now.report == NowReport(hastened=3)


async def test_polls_of_a_paused_account_are_told_apart(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 2)
    await plant.pool.execute("UPDATE carrier_account SET paused_until = now() + interval '1 hour'")
    await plant.config.refresh()
    now = PollNow(plant.queue, plant.config.snapshot, (CARDDATA,))
    await now.hasten(cards)
    assert now.report == NowReport(hastened=2, resting=2)
