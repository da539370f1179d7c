"""A changed interval spreads its cards anew: no second is asked for much more than its share."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from tests.polling.plant import Plant, add_cards

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling import keys
from junhong_cmp.polling.due import PollRule, milliseconds, next_due
from junhong_cmp.polling.reconciler import PollingReconciler, ReconcileReport
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA
CARDS = 20_000
HERD = 1.5


async def respread(plant: Plant, interval_s: int, jitter: float = 0.1) -> ReconcileReport:
    rule = {"carddata": {"interval_s": interval_s, "jitter": jitter}}
    await plant.pool.execute("UPDATE polling_config SET intervals = $1", rule)
    await plant.config.refresh()
    return await PollingReconciler(plant.pool, plant.queue, plant.config, plant.settings).reconcile(
        hasten=True
    )


async def due_times(plant: Plant, account: CarrierAccount) -> dict[int, int]:
    found: dict[int, int] = {}
    for shard in plant.queue.shards((account.id,), (CARDDATA,)):
        pairs: list[Any] = await plant.redis.zrange(keys.shard_due(shard), 0, -1, withscores=True)
        found |= {int(card): int(score) for card, score in pairs}
    assert len(found) == CARDS
    return found


def busiest(due: Mapping[int, int], begin_ms: int, seconds: int, grain_s: int = 1) -> float:
    """How many times its share of the period's polls the busiest second (or longer grain) is asked for."""
    grains = Counter((at - begin_ms) // (grain_s * 1000) for at in due.values())
    return max(grains.values()) / (len(due) / (seconds / grain_s))


@pytest.mark.parametrize("polled_before", [False, True])
async def test_from_an_hour_to_ten_seconds(
    plant: Plant, account: CarrierAccount, *, polled_before: bool
) -> None:
    cards = await add_cards(plant.pool, account, CARDS)
    await respread(plant, 3600)
    hourly = await due_times(plant, account)
    assert busiest(hourly, min(hourly.values()), 3600, grain_s=60) <= HERD
    if polled_before:  # each at its place within the last hour
        await plant.pool.execute(
            "UPDATE iot_card AS c SET carddata_attempted_at = p.at, carddata_succeeded_at = p.at "
            "FROM (SELECT id, to_timestamp(due / 1000.0 - 3600) AS at "
            "FROM unnest($1::bigint[], $2::bigint[]) AS t (id, due)) AS p WHERE c.id = p.id",
            list(hourly.keys()),
            list(hourly.values()),
        )
    began_ms = await plant.queue.now_ms()
    report = await respread(plant, 10)
    ended_ms = await plant.queue.now_ms()
    assert report.hastened >= CARDS * 0.99
    due = await due_times(plant, account)
    latest_ms = ended_ms + 10_000 + 1_000
    assert max(due.values()) <= latest_ms
    # Cards are placed within the ten seconds from when the comparison met them: it begins and ends gently.
    assert busiest(due, began_ms, 10) <= HERD
    rule = plant.config.rule_for(cards[0], CARDDATA)
    assert rule is not None
    following = polled_at_their_times(due, rule)
    middle = {card: at for card, at in following.items() if latest_ms <= at < latest_ms + 8_000}
    assert busiest(middle, latest_ms, 8) <= HERD
    assert CARDS * 0.6 < len(middle) < CARDS


async def test_from_ten_seconds_to_an_hour(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, CARDS)
    await respread(plant, 10)
    before = await due_times(plant, account)
    assert (await respread(plant, 3600)).hastened == 0
    assert await due_times(plant, account) == before  # their next poll comes as it would have, no sooner
    rule = plant.config.rule_for(cards[0], CARDDATA)
    assert rule is not None
    following = polled_at_their_times(before, rule)
    assert busiest(following, min(following.values()), 3600, grain_s=60) <= HERD


def polled_at_their_times(due: Mapping[int, int], rule: PollRule) -> dict[int, int]:
    """The due times after every card has been polled at its own."""
    assert milliseconds(rule.interval) >= 10_000
    return {card: next_due(card, CARDDATA, rule, at) for card, at in due.items()}
