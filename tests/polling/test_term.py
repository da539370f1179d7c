"""A scheduler that serves a leased term claims under its epoch, and nothing once the term is over."""

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_cards
from tests.waiting import FakeClock, wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.polling import keys
from junhong_cmp.polling.claim_hold import ClaimHold
from junhong_cmp.polling.continuity import Continuity
from junhong_cmp.polling.errors import FencedError, TermOverError
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.server_identity import server_identity
from junhong_cmp.polling.tasks import POLLING_QUEUE, TaskType
from junhong_cmp.polling.term import PollingTerm

CARDDATA = TaskType.POLLING_CARDDATA
QUEUE = queue_keys(POLLING_QUEUE)


def lasting(epoch: int, seconds: float = 60.0) -> Term:
    return Term(epoch, trusted_until=time.monotonic() + seconds)


def term_of(plant: Plant, leased: Term | None = None) -> PollingTerm:
    hold = ClaimHold(plant.pool, plant.redis, plant.settings)
    return PollingTerm(plant.redis, plant.queue, hold, leased)


@pytest.fixture
async def leased(plant: Plant, account: CarrierAccount) -> AsyncIterator[tuple[PollingScheduler, Term]]:
    """A scheduler of term 7 that has polled three cards of a fresh account."""
    term = lasting(7)
    scheduler = plant.scheduler(leased=term)
    cards = await add_cards(plant.pool, account, 3)
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in cards])
    await scheduler.start()
    await wait_until(lambda: _pending(plant.redis, 3), description="three polls")
    yield scheduler, term
    await scheduler.stop()


async def _pending(redis: Any, count: int) -> bool:
    return bool(await redis.llen(QUEUE.pending) == count)


async def fences(plant: Plant, account: CarrierAccount) -> list[str]:
    return [keys.shard_fence(shard) for shard in plant.queue.shards((account.id,))]


async def test_every_shard_is_sealed_with_the_epoch_of_the_lease(
    plant: Plant, account: CarrierAccount, leased: tuple[PollingScheduler, Term]
) -> None:
    assert {await plant.redis.get(fence) for fence in await fences(plant, account)} == {b"7"}


async def test_a_later_term_ends_this_one_and_refuses_its_claims(
    plant: Plant, account: CarrierAccount, leased: tuple[PollingScheduler, Term]
) -> None:
    _, term = leased
    shards = plant.queue.shards((account.id,))
    with capture_logs() as logs:
        await plant.queue.seal(9, shards)
        late = await add_cards(plant.pool, account, 20, first=100)
        await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in late])
        await wait_until(lambda: term.end_reason, description="the term is over")
    assert (term.end_reason, term.fence) == (TermEnd.FENCED, 9)
    [entry] = [entry for entry in logs if entry["event"] == "操作被隔离：任期已过期，停止调度"]
    assert (entry["epoch"], entry["fence"]) == (7, 9)
    assert await _pending(plant.redis, 3), "nothing was enqueued under the old epoch"
    with pytest.raises(FencedError):
        await plant.queue.claim(shards[0], epoch=7, limit=10, visibility=timedelta(minutes=1))


async def test_lost_fences_end_the_term_too(
    plant: Plant, account: CarrierAccount, leased: tuple[PollingScheduler, Term]
) -> None:
    """It must not seal anew by itself: a frozen leader would take the shards back from its successor."""
    _, term = leased
    with capture_logs() as logs:
        await plant.redis.delete(*await fences(plant, account))
        late = await add_cards(plant.pool, account, 20, first=100)
        await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in late])
        await wait_until(lambda: term.end_reason, description="the term is over")
    assert term.end_reason is TermEnd.DATA_LOST
    assert "检测到 Redis 数据丢失，结束本任期，由下一任期全量初始化" in [entry["event"] for entry in logs]
    assert not await plant.redis.exists(*await fences(plant, account))


async def test_a_claim_the_shard_has_forgotten_ends_the_term_too(
    plant: Plant, account: CarrierAccount, leased: tuple[PollingScheduler, Term]
) -> None:
    """As after the promotion of a replica that lagged behind within the term."""
    _, term = leased
    for shard in plant.queue.shards((account.id,), (CARDDATA,)):
        await plant.redis.delete(keys.shard_claim(shard))
    late = await add_cards(plant.pool, account, 20, first=100)
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in late])
    await wait_until(lambda: term.end_reason, description="the term is over")
    assert term.end_reason is TermEnd.DATA_LOST
    assert await plant.redis.get(keys.continuity()) == b"broken", "the next term holds its claims back"


async def test_a_lapsed_term_claims_nothing(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 3)
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in cards])
    polling = term_of(plant, lasting(7, -1))
    await polling.open()
    with pytest.raises(TermOverError):
        await plant.scheduler()._claim_round(polling).run()
    assert [await plant.score(card) for card in cards] == [1000, 1000, 1000]


async def test_what_was_claimed_before_the_term_lapsed_is_not_enqueued(
    plant: Plant, account: CarrierAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had been frozen between the claim and its task."""
    cards = await add_cards(plant.pool, account, 3)
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, 1000) for card in cards])
    term = lasting(7)
    polling = term_of(plant, term)
    await polling.open()
    claim_many = plant.queue.claim_many

    async def claim_and_freeze(*args: Any, **options: Any) -> Any:
        batches = await claim_many(*args, **options)
        term.extend(time.monotonic() - 1)
        return batches

    monkeypatch.setattr(plant.queue, "claim_many", claim_and_freeze)
    with pytest.raises(TermOverError):
        await plant.scheduler()._claim_round(polling).run()
    assert all(score != 1000 for score in [await plant.score(card) for card in cards]), "they were claimed"
    assert await _pending(plant.redis, 0), "and are due again by themselves"


async def test_trust_is_asked_for_before_anything_is_handed_over(plant: Plant) -> None:
    term = lasting(7)
    polling = term_of(plant, term)
    await polling.open()
    assert polling.epoch == 7
    polling.check()
    term.extend(time.monotonic() - 1)
    with pytest.raises(TermOverError, match="任期 7"):
        polling.check()


@pytest.fixture
async def restarted(
    plant: Plant, account: CarrierAccount, clock: FakeClock, redis_server: EmbeddedRedis
) -> PollingTerm:
    """Term 7 over a Redis that was restarted since it began, and is due to be looked at."""
    polling = PollingTerm(
        plant.redis, plant.queue, ClaimHold(plant.pool, plant.redis, plant.settings, clock=clock), lasting(7)
    )
    await polling.open()
    await polling.cover([account.id])
    await redis_server.restart()
    clock.advance(6)
    return polling


async def test_a_restarted_redis_that_knows_of_all_claims_is_vouched_for(
    plant: Plant, account: CarrierAccount, restarted: PollingTerm
) -> None:
    shard, *_ = plant.queue.shards((account.id,))
    await plant.redis.set(keys.shard_claim(shard), 5000)
    assert not await restarted.is_on_hold({shard: 5000})
    assert (
        await plant.redis.get(keys.continuity())
        == Continuity(await server_identity(plant.redis)).encode().encode()
    )


@pytest.mark.parametrize("forgotten", ["claim", "fence"])
async def test_a_restarted_redis_that_has_forgotten_anything_is_refused_though_nothing_is_due(
    plant: Plant, account: CarrierAccount, restarted: PollingTerm, forgotten: str
) -> None:
    before = await plant.redis.get(keys.continuity())
    shard, *_ = plant.queue.shards((account.id,))
    await plant.redis.set(keys.shard_claim(shard), 5000)
    if forgotten == "fence":
        await plant.redis.set(keys.shard_fence(shard), 6)
    with pytest.raises(FencedError):
        await restarted.is_on_hold({shard: 5001 if forgotten == "claim" else 5000})
    assert await plant.redis.get(keys.continuity()) == before


async def test_a_leader_told_to_stop_leaves_its_word_and_one_that_lapsed_does_not(
    plant: Plant, leased: tuple[PollingScheduler, Term]
) -> None:
    scheduler, _ = leased
    server = await server_identity(plant.redis)
    assert await plant.redis.get(keys.continuity()) == f"kept:{server}".encode()
    await scheduler.stop()
    word = await plant.redis.get(keys.continuity())
    assert word.startswith(f"left:{server}:".encode())
    late = lasting(8)
    lapsed = plant.scheduler(leased=late)
    await lapsed.start()
    await wait_until(lambda: _kept(plant.redis, server), description="the next leader has looked")
    late.extend(time.monotonic() - 1)
    await lapsed.stop()
    assert await _kept(plant.redis, server)


async def _kept(redis: Any, server: str) -> bool:
    return bool(await redis.get(keys.continuity()) == f"kept:{server}".encode())


async def test_without_a_lease_every_opening_takes_a_new_epoch(plant: Plant) -> None:
    polling = term_of(plant)
    await polling.open()
    first = polling.epoch
    polling.close()
    await polling.open()
    assert polling.epoch > first
    polling.check()
