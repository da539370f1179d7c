"""A cluster client that behaves under load, and as the first thing one does, like a single server's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from redis.asyncio.cluster import ClusterPipeline, ClusterPubSub, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

_UNLIMITED: Final = 2**31


class ClusterClient(RedisCluster):
    """A client of a cluster; a burst of callers waits for its ``pool_size`` connections a node.

    redis-py's own refuses a command when all connections of a node are busy.
    """

    def __init__(self, *, pool_size: int, pool_wait: timedelta, **settings: Any) -> None:
        super().__init__(max_connections=_UNLIMITED, **settings)
        self._free_slots = asyncio.Semaphore(pool_size)
        self._pool_wait_s = pool_wait.total_seconds()

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send one command, once a connection is free."""
        async with self.connection_slot():
            return await super().execute_command(*args, **kwargs)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> "_Pipeline":
        """Return a pipeline that waits for a free connection when it is executed."""
        del shard_hint  # of redis-py's signature; clusters have none
        return _Pipeline(self, transaction)  # type: ignore[abstract] # redis-py declares, but never uses it

    def pubsub(self, **kwargs: Any) -> "_Subscription":  # type: ignore[override] # keywords are all we use
        """Return a subscription; it may be the first thing this client does."""
        return _Subscription(self, **kwargs)

    @asynccontextmanager
    async def connection_slot(self) -> AsyncIterator[None]:
        """Hold one of the ``pool_size`` permits to use connections.

        Raises:
            redis.exceptions.ConnectionError: none became free in time.

        """
        try:
            async with asyncio.timeout(self._pool_wait_s):
                await self._free_slots.acquire()
        except TimeoutError:
            raise RedisConnectionError("No connection available.") from None
        try:
            yield
        finally:
            self._free_slots.release()


class _Pipeline(ClusterPipeline):
    """A pipeline of a cluster client takes its turn like a command."""

    def __init__(self, client: ClusterClient, transaction: Any) -> None:
        super().__init__(client, transaction)
        self._client = client

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        async with self._client.connection_slot():
            return await super().execute(*args, **kwargs)


class _Subscription(ClusterPubSub):
    """A subscription in a cluster learns the nodes before it picks one, which redis-py's own does not."""

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        await self.cluster.initialize()
        return await super().execute_command(*args, **kwargs)
