"""A card its carrier denies goes to the slow lane, is asked for by its MSISDN too, and comes back."""

from datetime import timedelta

from tests.fakes.gateway import FakeGateway
from tests.polling.plant import Plant, add_cards

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.records import ORPHAN_AFTER
from junhong_cmp.cards.store import load_cards
from junhong_cmp.gateway.client import CardRef, GatewayAccount, UsageAnswer
from junhong_cmp.gateway.errors import CardUnknown
from junhong_cmp.polling.eligibility import ORPHAN_INTERVAL
from junhong_cmp.polling.handlers.carddata import CarddataHandler


class CarrierOfNumbers(FakeGateway):
    """Knows cards by their MSISDN only, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.knows = False
        self.asked_by: list[str] = []

    async def query_usage(self, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        self.asked_by.append("msisdn" if card.by_msisdn else "iccid")
        if not (self.knows and card.by_msisdn):
            raise CardUnknown("运营商不认识该卡")
        return await super().query_usage(account, card)


async def test_the_orphan_lane(plant: Plant, account: CarrierAccount) -> None:
    carrier = CarrierOfNumbers()
    plant.base.gateway = carrier
    plant.gateway = carrier
    plant.__post_init__()
    await plant.config.refresh()
    (card,) = await add_cards(plant.pool, account, 1, msisdn="13800000000")
    handler = CarddataHandler(plant.base)

    async def poll() -> Card:
        await handler.process_task(await plant.task_for(card))
        return (await load_cards(plant.pool, [card.id]))[card.id]

    for denials in range(1, ORPHAN_AFTER + 1):
        after = await poll()
        assert (after.not_found_count, after.orphan) == (denials, denials == ORPHAN_AFTER)
    rule = plant.config.rule_for(after, handler.task_type)
    assert rule is not None
    assert rule.interval == ORPHAN_INTERVAL
    assert carrier.asked_by == ["iccid"] * ORPHAN_AFTER
    after = await poll()
    await poll()
    assert carrier.asked_by[ORPHAN_AFTER:] == ["msisdn", "iccid"]
    carrier.knows = True
    back = await poll()
    assert (back.orphan, back.not_found_count) == (False, 0)
    rule = plant.config.rule_for(back, handler.task_type)
    assert rule is not None
    assert rule.interval == timedelta(hours=1)
