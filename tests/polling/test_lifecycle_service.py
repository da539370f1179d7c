import asyncio
import time
from datetime import UTC, datetime, timedelta

from tests.polling.plant import Plant, add_account, add_cards, add_rule

from junhong_cmp.cards.model import CarrierAccount, PollProgress
from junhong_cmp.polling.background import cancel_and_wait
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

REALNAME = TaskType.POLLING_REALNAME


async def test_a_new_card_waits_for_each_type_it_needs(plant: Plant, account: CarrierAccount) -> None:
    (plain,) = await add_cards(plant.pool, account, 1)
    (named,) = await add_cards(plant.pool, account, 1, first=10, real_name_required=True)
    assert await plant.lifecycle.cards_created([plain, named]) == 5
    assert await plant.lifecycle.cards_created([plain, named]) == 0
    assert await plant.lifecycle.cards_created([]) == 0
    assert await plant.score(plain, REALNAME) is None
    now = await plant.queue.now_ms()
    for kind in POLLING_TASK_TYPES:
        assert now - 2000 < (await plant.score(named, kind) or 0) <= now + 3_600_000


async def test_a_deleted_card_waits_nowhere(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 3, real_name_required=True)
    await plant.lifecycle.cards_created(cards)
    assert await plant.lifecycle.cards_deleted(cards[:2]) == 6
    assert await plant.lifecycle.cards_deleted(cards[:2]) == 0
    assert (await plant.queue.counts([account.id])).cards == 3


async def test_switching_polling_takes_a_card_out_and_in(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.lifecycle.cards_created([card])
    off = card._replace(polling_enabled=False)
    await plant.lifecycle.cards_changed([(card, off)])
    assert await plant.score(card) is None
    await plant.lifecycle.cards_changed([(off, card)])
    assert await plant.score(card) is not None


async def test_a_change_of_no_concern_keeps_the_score(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.queue.add_many(TaskType.POLLING_CARDDATA, account.id, [(card.id, 5)])
    await plant.lifecycle.cards_changed([(card, card._replace(plan="30G"))])
    assert await plant.score(card) == 5


async def test_a_card_that_moves_changes_its_shard(plant: Plant, account: CarrierAccount) -> None:
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.lifecycle.cards_created([card])
    moved = card._replace(account_id=other.id)
    await plant.lifecycle.cards_changed([(card, moved)])
    assert await plant.score(card) is None
    assert await plant.score(moved) is not None


async def test_re_enabling_breaks_the_claim_of_a_poll_that_saw_the_card_off(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    claim = await plant.claim_card(card)
    shard = plant.queue.shard(TaskType.POLLING_CARDDATA, account.id, card.id)
    await plant.lifecycle.cards_changed([(card._replace(polling_enabled=False), card)])
    assert not await plant.queue.remove_claimed(shard, card.id, claim.claim)
    assert await plant.score(card) is not None


async def test_without_a_rule_nothing_waits(plant: Plant, account: CarrierAccount) -> None:
    await plant.pool.execute("DELETE FROM polling_config")
    await add_rule(plant.pool, {"cardstatus": {"interval_s": 60}})
    await plant.config.refresh()
    (card,) = await add_cards(plant.pool, account, 1)
    assert await plant.lifecycle.cards_created([card]) == 1


async def test_many_new_cards_never_hold_the_event_loop_for_long(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    cards = [card._replace(id=number) for number in range(1, 5001)]
    stretches: list[float] = []

    async def watch_loop() -> None:
        while True:
            began = time.thread_time()  # of the processor: others on the machine make no difference
            await asyncio.sleep(0)
            stretches.append(time.thread_time() - began)

    watching = asyncio.create_task(watch_loop())
    now = await plant.queue.now_ms()
    assert await plant.lifecycle.cards_created(cards) == 2 * len(cards)
    await cancel_and_wait(watching)
    assert max(stretches) < sum(stretches) / 4  # in the same run, however fast the machine is
    assert now < (await plant.score(cards[-1]) or 0)


async def test_a_card_met_again_waits_for_what_follows_its_last_poll(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    now = await plant.queue.now_ms()
    polled_at = datetime.fromtimestamp(now / 1000, UTC) - timedelta(hours=3)
    polled = card._replace(carddata=PollProgress(polled_at, polled_at, 0))
    await plant.lifecycle.cards_created([polled])
    assert now - 3 * 3_600_000 <= (await plant.score(card) or 0) < now - 3_600_000
