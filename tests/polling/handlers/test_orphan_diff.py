"""Our cards against the carrier's list: differences recorded and counted, no card touched."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.handlers.firing import fire
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.gateway.card_list import CardPage, ListedCard
from junhong_cmp.gateway.errors import GatewayError, NotOffered, Throttled, Transient
from junhong_cmp.polling.handlers.orphan_diff import OrphanDiffHandler


class CarrierList:
    """A carrier's list in pages of two; ``fails`` is met at the page of that cursor."""

    def __init__(self) -> None:
        self.cards: list[ListedCard] = []
        self.fails: dict[str | None, GatewayError] = {}
        self.asked: list[str | None] = []
        self.loops = False

    async def list_cards(self, _account: object, cursor: str | None) -> CardPage:
        self.asked.append(cursor)
        if cursor in self.fails:
            raise self.fails[cursor]
        start = int(cursor or 0)
        end = start + 2
        more = self.loops or end < len(self.cards)
        return CardPage(self.cards[start:end], str(0 if self.loops else end) if more else None)


@pytest.fixture
def carrier() -> CarrierList:
    return CarrierList()


def handler_of(plant: Plant, clock: FakeClock, gateway: Any) -> OrphanDiffHandler:
    parts = RuleParts(plant, clock)
    return OrphanDiffHandler(
        pool=plant.pool,
        gateway=gateway,
        config_manager=plant.config,
        concurrency=plant.concurrency,
        pauses=parts.pauses,
        clock=clock,
        page=2,
    )


async def settled_cards(plant: Plant, account: CarrierAccount, count: int, clock: FakeClock) -> list[Card]:
    cards = await add_cards(plant.pool, account, count)
    await plant.pool.execute(
        "UPDATE iot_card SET status = 'active', created_at = $1, status_changed_at = $1",
        clock.now() - timedelta(days=1),
    )
    return cards


def listed(cards: Sequence[Card], status: str = "active", raw: str | None = "2") -> list[ListedCard]:
    return [ListedCard(card.iccid, card.msisdn, raw, status) for card in cards]


async def differences(plant: Plant) -> set[tuple[str, str, bool]]:
    rows = await plant.pool.fetch("SELECT iccid, kind, resolved_at FROM carrier_card_difference")
    return {(row["iccid"], row["kind"], row["resolved_at"] is None) for row in rows}


async def test_differences_are_recorded_counted_and_resolved(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    same, stopped, missing, unknown = await settled_cards(plant, account, 4, clock)
    await plant.pool.execute("UPDATE iot_card SET status = 'unknown' WHERE id = $1", unknown.id)
    stranger = ListedCard("89860499999999999999", None, None, "active")
    carrier.cards = [
        *listed([same, unknown]),
        *listed([stopped], "suspended", "4"),
        stranger,
        ListedCard("not a number", None, None, "active"),
    ]
    before = await plant.pool.fetch("SELECT * FROM iot_card ORDER BY id")
    handler = handler_of(plant, clock, carrier)
    with capture_logs() as logs:
        await fire(handler)
    (told,) = [entry for entry in logs if entry["event"] == "运营商卡清单比对完成"]
    names = ("listed", "only_at_carrier", "only_here", "status_differs", "unreadable", "resolved")
    assert [told[name] for name in names] == [5, 1, 1, 1, 1, 0]
    assert await differences(plant) == {
        (stopped.iccid, "status_differs", True),
        (stranger.iccid, "only_at_carrier", True),
        (missing.iccid, "only_here", True),
    }
    assert await plant.pool.fetch("SELECT * FROM iot_card ORDER BY id") == before
    clock.advance(timedelta(days=1))
    carrier.cards = listed([same, unknown, stopped])
    await fire(handler)
    assert await differences(plant) == {
        (stopped.iccid, "status_differs", False),
        (stranger.iccid, "only_at_carrier", False),
        (missing.iccid, "only_here", True),
    }


async def test_the_short_form_of_a_number_is_the_same_card(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    (card,) = await settled_cards(plant, account, 1, clock)
    carrier.cards = [ListedCard(card.iccid[:19], None, None, "active")]
    await fire(handler_of(plant, clock, carrier))
    assert await differences(plant) == set()


async def test_cards_that_came_or_changed_meanwhile_are_not_told(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    (changed,) = await settled_cards(plant, account, 1, clock)
    await plant.pool.execute("UPDATE iot_card SET status_changed_at = $1", clock.now() + timedelta(seconds=1))
    (fresh,) = await add_cards(plant.pool, account, 1, first=50)
    await plant.pool.execute(
        "UPDATE iot_card SET created_at = $2 WHERE id = $1", fresh.id, clock.now() + timedelta(seconds=1)
    )
    carrier.cards = listed([changed], "suspended")
    await fire(handler_of(plant, clock, carrier))
    assert await differences(plant) == set()


@pytest.mark.parametrize("error", [Transient("断开"), Throttled("太快", timedelta(minutes=1))])
async def test_a_list_that_breaks_off_says_nothing_of_missing_cards(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock, error: GatewayError
) -> None:
    cards = await settled_cards(plant, account, 5, clock)
    carrier.cards = listed(cards)
    carrier.fails = {"2": error}
    with capture_logs() as logs:
        await fire(handler_of(plant, clock, carrier))
    assert "运营商卡清单比对未完成" in [entry["event"] for entry in logs]
    assert await differences(plant) == set()


async def test_cursors_that_go_round_end(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    carrier.cards = listed(await settled_cards(plant, account, 2, clock))
    carrier.loops = True
    with capture_logs() as logs:
        await fire(handler_of(plant, clock, carrier))
    assert [entry["error"] for entry in logs if "error" in entry] == ["运营商的分页游标重复"]
    assert len(carrier.asked) == 2


async def test_one_account_without_a_list_keeps_no_other_waiting(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    await add_account(plant.pool, "other")
    await plant.config.refresh()
    carrier.fails = {None: NotOffered("不支持")}
    with capture_logs() as logs:
        await fire(handler_of(plant, clock, carrier))
    told = [entry["account"] for entry in logs if entry["event"] == "运营商不提供卡清单，跳过比对"]
    assert sorted(told) == ["demo", "other"]


async def test_it_waits_for_a_gateway_and_ends_when_the_server_stops(
    plant: Plant, account: CarrierAccount, carrier: CarrierList, clock: FakeClock
) -> None:
    with pytest.raises(PutBack, match="网关未配置"):
        await fire(handler_of(plant, clock, None))
    carrier.cards = listed(await settled_cards(plant, account, 5, clock))
    await fire(handler_of(plant, clock, carrier), draining=True)
    assert (carrier.asked, await differences(plant)) == ([], set())
