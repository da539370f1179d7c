from collections import Counter
from datetime import UTC, datetime, timedelta

from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_cards, add_rule
from tests.waiting import wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling import keys
from junhong_cmp.polling.initializer import PollingInitializer
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_QUEUE, TaskType

_MANY_CARDS = """
    INSERT INTO iot_card (account_id, iccid, iccid19)
    SELECT $1, '898600' || lpad(n::text, 14, '0'), left('898600' || lpad(n::text, 14, '0'), 19)
    FROM generate_series(1, $2::int) AS n
"""
SMALL_PAGES = PollingSettings(init_page=100)


def make_initializer(plant: Plant, settings: PollingSettings = SMALL_PAGES) -> PollingInitializer:
    return PollingInitializer(plant.pool, plant.queue, plant.config, settings=settings)


async def scores(plant: Plant, account: CarrierAccount) -> dict[tuple[str, int], float]:
    found: dict[tuple[str, int], float] = {}
    for shard in plant.queue.shards([account.id]):
        pairs: list[tuple[bytes, float]] = await plant.redis.execute_command(
            "ZRANGE", keys.shard_due(shard), 0, -1, "WITHSCORES", withscores=True
        )
        for card, score in pairs:
            assert (shard.task_type, int(card)) not in found, "a card waits in one shard a type"
            found[shard.task_type, int(card)] = score
    return found


async def test_every_card_waits_once_a_type_and_the_same_after_a_second_run(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 950)
    initializer = make_initializer(plant)
    with capture_logs() as logs:
        report = await initializer.initialise()
    assert (report.cards, report.places, report.added) == (950, 1900, 1900)
    (entry,) = [entry for entry in logs if entry["event"] == "全量初始化完成"]
    assert (entry["cards"], entry["added"]) == (950, 1900)
    first = await scores(plant, account)
    assert set(first) == {
        (kind, card.id) for card in cards for kind in (TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS)
    }
    assert (await initializer.initialise()).added == 0
    assert await scores(plant, account) == first
    assert await plant.queue.has_generation()


async def test_lost_data_comes_back_with_the_same_phases(plant: Plant, account: CarrierAccount) -> None:
    await add_cards(plant.pool, account, 300)
    initializer = make_initializer(plant)
    await initializer.initialise()
    first = await scores(plant, account)
    await plant.redis.flushall()
    await initializer.initialise()
    assert {score % 3_600_000 for score in (await scores(plant, account)).values()} == {
        score % 3_600_000 for score in first.values()
    }


async def test_overdue_cards_are_due_at_once_the_oldest_first(plant: Plant, account: CarrierAccount) -> None:
    old, older, fresh = await add_cards(plant.pool, account, 3)
    now = datetime.now(UTC)
    for card, hours in ((old, 3), (older, 9), (fresh, 0)):
        await plant.pool.execute(
            "UPDATE iot_card SET carddata_attempted_at = $2, carddata_succeeded_at = $2 WHERE id = $1",
            card.id,
            now - timedelta(hours=hours),
        )
    await make_initializer(plant).initialise()
    due = {card.id: (await plant.score(card) or 0) for card in (old, older, fresh)}
    now_ms = now.timestamp() * 1000
    assert due[older.id] < due[old.id] < now_ms < due[fresh.id]


async def test_it_goes_on_where_a_fault_stopped_it(
    plant: Plant, account: CarrierAccount, redis_server: EmbeddedRedis
) -> None:
    await add_cards(plant.pool, account, 500)
    initializer = make_initializer(plant)
    await redis_server.stop()
    with capture_logs() as logs:
        await initializer.start()
        await wait_until(
            lambda: "全量初始化中断，稍后继续" in [entry["event"] for entry in logs], description="the fault"
        )
        await redis_server.start()
        await wait_until(lambda: initializer.initialised, description="the end")
    await initializer.stop()
    await initializer.stop()
    assert (await plant.queue.counts([account.id])).cards == 1000


async def test_new_rules_bring_waiting_cards_forward(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 50)
    initializer = make_initializer(plant)
    await initializer.start()
    await wait_until(lambda: initializer.initialised, description="the end of the initialisation")
    await plant.pool.execute(
        "UPDATE polling_config SET intervals = $1", {"carddata": {"interval_s": 60, "jitter": 0.1}}
    )
    await plant.config.refresh()
    now_ms = await plant.queue.now_ms()

    async def all_soon() -> bool:
        dues = [await plant.score(card) for card in cards]
        return all(due is not None and due <= now_ms + 70_000 for due in dues)

    await wait_until(all_soon, description="every card within a minute")

    async def no_status_polls() -> bool:
        counts = await plant.queue.counts([account.id], task_types=[TaskType.POLLING_CARDSTATUS])
        return counts.cards == 0

    await wait_until(no_status_polls, description="what no rule asks for to be removed")
    await initializer.stop()


async def test_reported_loss_means_a_full_initialisation(plant: Plant, account: CarrierAccount) -> None:
    await add_cards(plant.pool, account, 20)
    initializer = make_initializer(plant)
    await initializer.start()
    await wait_until(lambda: initializer.initialised, description="the end of the initialisation")
    await plant.redis.flushall()
    initializer.report_lost_data()

    async def all_back() -> bool:
        return (await plant.queue.counts([account.id])).cards == 40

    await wait_until(all_back, description="every card back")
    await initializer.stop()


async def test_start_and_stop_bear_being_repeated(plant: Plant, account: CarrierAccount) -> None:
    await add_cards(plant.pool, account, 20)
    initializer = make_initializer(plant)
    for _ in range(10):
        await initializer.start()
        await initializer.stop()
    await initializer.start()
    await wait_until(lambda: initializer.initialised, description="the end of the initialisation")
    await initializer.stop()


async def test_a_first_load_spreads_evenly_and_keeps_its_phases(
    plant: Plant, account: CarrierAccount
) -> None:
    cards, interval_s = 60_000, 60
    await plant.pool.execute("DELETE FROM polling_config")
    await add_rule(plant.pool, {"carddata": {"interval_s": interval_s, "jitter": 0.1}})
    await plant.config.refresh()
    await plant.pool.execute(_MANY_CARDS, account.id, cards)
    initializer = make_initializer(plant, PollingSettings())
    assert (await initializer.initialise()).added == cards
    first = await scores(plant, account)
    seconds = Counter(int(due) // 1000 for due in first.values())
    assert max(seconds.values()) <= 1.5 * cards / interval_s
    assert len(seconds) >= interval_s
    await plant.redis.flushall()
    await make_initializer(plant, PollingSettings()).initialise()
    again = await scores(plant, account)
    assert {place: due % (interval_s * 1000) for place, due in again.items()} == {
        place: due % (interval_s * 1000) for place, due in first.items()
    }


async def test_the_scheduler_works_while_cards_are_still_being_read(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.queue.add_many(TaskType.POLLING_CARDDATA, account.id, [(card.id, 1000)])
    initializer, scheduler = make_initializer(plant), plant.scheduler()

    async def enqueued() -> bool:
        return bool(await plant.redis.llen(queue_keys(POLLING_QUEUE).pending))

    async with plant.pool.acquire() as conn, conn.transaction():
        await conn.execute("LOCK TABLE iot_card IN ACCESS EXCLUSIVE MODE")
        await initializer.start()
        await scheduler.start()
        await wait_until(enqueued, description="a poll in the queue")
        assert not initializer.initialised
    await wait_until(lambda: initializer.initialised, description="the end of the initialisation")
    await scheduler.stop()
    await initializer.stop()
