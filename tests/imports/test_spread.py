"""Cards of an import start being polled spread out."""

from collections import Counter

import asyncpg
from redis.asyncio import Redis
from tests.imports.card_files import PutFile, card_file, delivery

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.keys import shard_due
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.storage.store import Storage

ROWS = 12_000
INTERVAL_S = 40
RULE = """
    INSERT INTO polling_config (name, priority, intervals) VALUES ('r', 1, '{"carddata": {"interval_s": 40}}')
"""


async def test_no_second_has_more_than_one_and_a_half_times_its_share(
    pool: asyncpg.Pool, redis: Redis, postgres_dsn: str, storage: Storage, put_file: PutFile
) -> None:
    await pool.execute(RULE)
    task = await put_file(card_file(range(ROWS)))
    queue, config = PollingQueueManager(redis), PollingConfigManager(pool, postgres_dsn)
    await config.refresh()
    lifecycle = PollingLifecycleService(queue, config)
    before = await queue.now_ms()
    await CardImportHandler(pool, storage, lifecycle).process_task(delivery(task.id))
    after = await queue.now_ms()
    due = await due_times(redis, queue, task.account_id)
    await queue.close()
    assert len(due) == ROWS
    assert before < min(due)
    assert max(due) <= after + INTERVAL_S * 1000
    # The import itself took a while: points of a phase that had gone by are due one interval later.
    seconds = Counter((one // 1000) % INTERVAL_S for one in due)
    assert len(seconds) == INTERVAL_S
    assert max(seconds.values()) <= 1.5 * ROWS / INTERVAL_S
    absolute = Counter((one - before) // 1000 for one in due)
    assert max(absolute.values()) <= 1.5 * ROWS / INTERVAL_S


async def due_times(redis: RedisClient, queue: PollingQueueManager, account_id: int) -> list[int]:
    due: list[int] = []
    for shard in queue.shards([account_id], [TaskType.POLLING_CARDDATA]):
        reply = await redis.execute_command("ZRANGE", shard_due(shard), 0, -1, "WITHSCORES")
        due += [int(score) for _, score in reply]
    return due
