"""Requirement: consumer 保留轮询任务运行依赖."""

from datetime import timedelta

from tests.scenarios.platform import Platform, now_s
from tests.waiting import wait_until

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.shards import ShardId, shard_of
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload, TaskType
from junhong_cmp.storage.store import open_storage

EPOCH = 1
HOUR_S = 3_600
VISIBILITY = timedelta(hours=20)


async def test_consumer_polls_a_card_and_writes_it_back(platform: Platform) -> None:
    """consumer 消费轮询任务后可重新入队

    The test itself is the leader here: it claims one card and enqueues its poll. The consumer finds
    interval and limits through its own dependencies, and the card ends up waiting for its next hour.
    """
    await platform.poll_usage_every(HOUR_S)
    [card] = await platform.issue_cards(1)
    due_ms = int((now_s() - 1) * 1_000)
    queue = PollingQueueManager(platform.redis)
    await queue.add_many(TaskType.POLLING_CARDDATA, platform.account_id, [(card.id, due_ms)])
    shard = ShardId(TaskType.POLLING_CARDDATA, platform.account_id, shard_of(card.id, 8))
    await queue.seal(EPOCH, [shard])
    worker = await platform.join("consumer")

    [claim] = (await queue.claim(shard, epoch=EPOCH, limit=10, visibility=VISIBILITY)).claims
    payload = PollPayload(card_id=card.id, account_id=platform.account_id, claim=claim.claim, due=due_ms)
    await Client(platform.redis).enqueue(
        Task(TaskType.POLLING_CARDDATA, payload.encode()), EnqueueOptions(queue=POLLING_QUEUE, max_retry=1)
    )
    await platform.all_polled([card])
    assert (await platform.carrier_log()).calls == {(card.iccid, "usage"): 1}

    async def written_back() -> bool:
        score = (await platform.scores())[str(card.id)]
        return now_s() - 60 < score / 1_000 <= now_s() + HOUR_S and score != claim.claim

    await wait_until(written_back, description="the card waits for the next hour's poll")
    assert await platform.redis.exists(f"polling:{{account:{platform.account_id}}}:rate"), "limits were asked"
    assert await platform.members_of_shards() == {str(card.id): 1}
    assert await worker.stop() == 0
    await queue.close()


async def test_consumer_imports_cards_into_the_shards(platform: Platform) -> None:
    """consumer 可处理导入任务的轮询生命周期回调"""
    await platform.poll_usage_every(3_600)
    file = platform.folder / "cards.csv"
    numbers = [f"898604B8{number:012d}" for number in range(50)]
    file.write_text("ICCID\n" + "\n".join(numbers) + "\n", encoding="utf-8")
    worker = await platform.join("consumer")

    storage = open_storage(platform.environment()["JUNHONG_STORAGE_URL"])
    task = await submit_import(platform.pool, storage, Client(platform.redis), account_code="demo", path=file)
    await wait_until(
        lambda: platform.import_is(task.id, "done"), timeout=30, description="the import is done"
    )

    rows = await platform.pool.fetch("SELECT id, iccid FROM iot_card ORDER BY iccid")
    assert [row["iccid"] for row in rows] == numbers
    assert await platform.members_of_shards() == {str(row["id"]): 1 for row in rows}
    assert [record["module"] for record in worker.find("模块已启动")] == ["queue_server"]
    assert await worker.stop() == 0
