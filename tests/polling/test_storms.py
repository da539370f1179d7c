"""G2 through whole turns: a failing carrier costs a few cards a failure, and no card its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson
from structlog.testing import capture_logs
from tests.gateway.clients import gateway_for
from tests.gateway.scripted_server import Exchange, http_answer, json_answer, scripted_server
from tests.polling.plant import Plant, add_cards
from tests.waiting import wait_until

from junhong_cmp.cards.account_store import find_account
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.gateway.limits.breaker import BreakerSettings
from junhong_cmp.gateway.tuning import GatewayTuning
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.handlers.carddata import CarddataHandler

TOLD_BY = 10
STORM = http_answer(b"<html>", status="502 Bad Gateway", content_type="text/html")


@dataclass
class Storm:
    """A carrier in a storm, and polling that goes through it."""

    plant: Plant
    base: PollingBase
    over: asyncio.Event
    calls: list[Exchange]

    async def poll(self, card: Card) -> None:
        await CarddataHandler(self.base).process_task(await self.plant.task_for(card))


@asynccontextmanager
async def storm_over(plant: Plant, rest: timedelta) -> AsyncIterator[Storm]:
    over = asyncio.Event()

    async def respond(exchange: Exchange) -> None:
        iccid = orjson.loads(exchange.body)["iccid"]
        usage = {"iccid": iccid, "used": 7, "unit": "KB", "reading_at": datetime.now(UTC).isoformat()}
        await exchange.send(json_answer(usage) if over.is_set() else STORM)

    tuning = GatewayTuning(breaker=BreakerSettings(min_calls=TOLD_BY, rest=rest))
    async with scripted_server(respond) as server, gateway_for(server.url, tuning) as gateway:
        base = PollingBase(
            plant.pool, plant.queue, plant.config, plant.concurrency, gateway, plant.stats, plant.settings
        )
        try:
            yield Storm(plant, base, over, server.exchanges)
        finally:
            await base.close()


async def test_cards_of_a_failing_carrier_are_put_back_without_a_failure(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 60)
    async with storm_over(plant, timedelta(minutes=1)) as storm:
        with capture_logs() as logs:
            for card in cards:
                await storm.poll(card)
    assert len(storm.calls) == TOLD_BY
    after = await load_cards(plant.pool, [card.id for card in cards])
    assert [after[card.id].carddata.fail_count for card in cards] == [1] * TOLD_BY + [0] * 50
    assert await plant.totals() == {"failed": TOLD_BY, "throttled": 50}
    now_ms = await plant.queue.now_ms()
    for card in cards:
        assert (await plant.score(card) or 0) > now_ms - 5000, "every card keeps its place, and is due again"
    events = [entry["event"] for entry in logs]
    assert events.count("网关熔断开启") == 1
    async with plant.pool.acquire() as conn:
        paused = await find_account(conn, account.code)
    assert paused is not None
    assert paused.pause_reason == "breaker_open", "the other workers know it too"


async def test_the_account_is_polled_again_by_itself_when_the_storm_is_over(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, TOLD_BY + 1)
    async with storm_over(plant, timedelta(seconds=0.3)) as storm:
        with capture_logs() as logs:
            for card in cards:
                await storm.poll(card)
            storm.over.set()
            last = cards[-1]

            async def polled() -> bool:
                await storm.poll(last)
                return (await load_cards(plant.pool, [last.id]))[last.id].carddata.succeeded_at is not None

            await wait_until(polled, timeout=15, description="the account works again")
            for card in cards:
                await storm.poll(card)
    after = await load_cards(plant.pool, [card.id for card in cards])
    assert all(card.carddata.succeeded_at is not None for card in after.values())
    assert {card.carddata.fail_count for card in after.values()} == {0}
    told = [entry["event"] for entry in logs if entry["event"].startswith("网关熔断")]
    assert told == ["网关熔断开启", "网关熔断半开", "网关熔断关闭"]
