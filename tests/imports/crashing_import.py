"""A process that runs one import with the real polling lifecycle and can kill itself on the way.

``python -m tests.imports.crashing_import DSN REDIS_URL STORAGE_URL IMPORT_ID CALL WHEN``: at the CALL-th
announcement of new cards (0: never) it dies by SIGKILL, WHEN ``before`` or ``after`` the announcement.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from tests.imports.card_files import delivery

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.model import Card
from junhong_cmp.db.pool import open_pool
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.storage.store import open_storage


class DyingLifecycle:
    """Passes announcements on until its time has come."""

    def __init__(self, lifecycle: PollingLifecycleService, call: int, when: str) -> None:
        self._lifecycle, self._calls_left, self._when = lifecycle, call, when

    async def cards_created(self, cards: Sequence[Card]) -> None:
        self._calls_left -= 1
        if self._calls_left == 0 and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await self._lifecycle.cards_created(cards)
        if self._calls_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(dsn: str, redis_url: str, storage_url: str, import_id: int, call: int, when: str) -> None:
    pool, redis = await open_pool(dsn), open_redis(redis_url)
    queue, config = PollingQueueManager(redis), PollingConfigManager(pool, dsn)
    await config.refresh()
    lifecycle = DyingLifecycle(PollingLifecycleService(queue, config), call, when)
    handler = CardImportHandler(pool, open_storage(storage_url), lifecycle)
    await handler.process_task(delivery(import_id))
    await queue.close()
    await redis.aclose()
    await pool.close()


if __name__ == "__main__":
    dsn, redis_url, storage_url, import_id, call, when = sys.argv[1:]
    asyncio.run(main(dsn, redis_url, storage_url, int(import_id), int(call), when))
