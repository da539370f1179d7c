"""A task queue full of polls: claimed and handed over as the leader does it, before anybody is measured."""

from collections import defaultdict
from datetime import timedelta
from typing import Any, Final

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.db.pool import open_pool
from junhong_cmp.polling.dispatcher import PollDispatcher
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import TaskType

_VISIBILITY: Final = timedelta(hours=1)
_CLAIMED: Final = 200
_EPOCH: Final = 1
_CARDS = "SELECT id, account_id FROM iot_card ORDER BY id LIMIT $1"


async def fill_queue(redis_url: str, dsn: str, cards: int, batch_size: int) -> int:
    """Empty Redis, let the first ``cards`` cards be due, and enqueue their polls; return how many tasks."""
    redis: Any = open_redis(redis_url)
    await redis.flushall()
    pool = await open_pool(dsn, max_size=1)
    queue = PollingQueueManager(redis)
    places: defaultdict[ShardId, list[int]] = defaultdict(list)
    for row in await pool.fetch(_CARDS, cards):
        places[queue.shard(TaskType.POLLING_CARDDATA, row["account_id"], row["id"])] += (1000, row["id"])
    await queue.add_places(places)
    await queue.seal(_EPOCH, list(places))
    dispatcher, tasks = PollDispatcher(Client(redis), PollingSettings()), 0
    for shard in places:
        while True:
            batch = await queue.claim(shard, epoch=_EPOCH, limit=_CLAIMED, visibility=_VISIBILITY)
            tasks += dispatcher.add(shard, batch.claims, batch_size=batch_size)
            if len(batch.claims) < _CLAIMED:
                break
    while dispatcher.has_waiting:
        await dispatcher.flush(1)
    await queue.close()
    await pool.close()
    await redis.aclose()
    return tasks
