"""Requirement: 多实例部署语义."""

import signal

from tests.scenarios.platform import INITIALISED, Platform, now_s

INTERVAL_S = 2
CARDS = 300
GRACE_S = 1  # tasks that were already running when fetching was stopped have ended by then


async def test_a_new_consumer_takes_tasks_and_duplicates_no_duty(platform: Platform) -> None:
    """新增 consumer 不复制主动调度

    One leader and two consumers work; a third consumer joins. When the others are told to take no more
    tasks (SIGTSTP), the newcomer polls every card that the leader goes on to schedule. Cron entries have
    fired once an instant, the full initialisation happened once and in the leader, and no card was polled
    by two at once.
    """
    await platform.poll_usage_every(INTERVAL_S)
    cards = await platform.issue_cards(CARDS)
    leader = await platform.join("leader", name="leader")
    consumers = [await platform.join("consumer", name=f"consumer-{number}") for number in (1, 2)]
    await leader.wait_for(INITIALISED)
    await platform.all_polled(cards)
    await platform.wait_for_firing("import_redrive")

    consumers.append(await platform.join("consumer", name="consumer-3"))
    await platform.all_polled(cards, since=now_s())
    for others in (leader, *consumers[:2]):
        others.signal(signal.SIGTSTP)
        await others.wait_for("收到 SIGTSTP，停止取新任务")
    await platform.all_polled(cards, since=now_s() + GRACE_S)
    await platform.wait_for_firing("import_redrive")

    for worker in (*consumers, leader):
        assert await worker.stop() == 0
    firings = await platform.cron_firings("import_redrive")
    assert len(firings) == len(set(firings)), "an instant fired twice"
    assert [len(worker.find(INITIALISED)) for worker in (leader, *consumers)] == [1, 0, 0, 0]
    log = await platform.carrier_log()
    assert log.cards("usage") == {card.iccid for card in cards}
    assert log.overlaps == ()
    assert await platform.members_of_shards() == {str(card.id): 1 for card in cards}


async def test_the_leader_goes_on_alone_and_so_does_all(platform: Platform) -> None:
    """回滚到单实例兼容模式"""
    await platform.poll_usage_every(INTERVAL_S)
    cards = await platform.issue_cards(CARDS)
    leader = await platform.join("leader", name="only")
    consumers = [await platform.join("consumer", name=f"consumer-{number}") for number in (1, 2)]
    await platform.all_polled(cards)

    for consumer in consumers:
        assert await consumer.stop() == 0
    await platform.all_polled(cards, since=now_s())
    await platform.wait_for_firing("import_redrive")
    assert await leader.stop() == 0

    everything = await platform.join("all", name="only")
    await platform.all_polled(cards, since=now_s())
    await platform.wait_for_firing("import_redrive")
    assert await everything.stop() == 0
    assert (await platform.carrier_log()).overlaps == ()
    assert await platform.members_of_shards() == {str(card.id): 1 for card in cards}
