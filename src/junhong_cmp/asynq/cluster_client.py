"""A cluster client that behaves under load, and as the first thing one does, like a single server's."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from redis.asyncio.cluster import ClusterPipeline, ClusterPubSub, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from junhong_cmp.asynq.cancellation import CancellableConnection, CancellableSSLConnection, CancellableWrites

_UNLIMITED: Final = 2**31


class _ReplacedWhenClosed(CancellableWrites):
    """Opens the connection anew, before anything is sent, if the node has closed it meanwhile.

    The pool of a single server's client does that; the cluster client of redis-py takes its chances.
    """

    async def send_packed_command(
        self,
        command: bytes | str | Iterable[bytes],
        check_health: bool = True,  # noqa: FBT001, FBT002 - redis-py's
    ) -> None:
        if self._reader is not None and self._reader.at_eof():
            await self.disconnect(nowait=True)
        await super().send_packed_command(command, check_health)


class NodeConnection(_ReplacedWhenClosed, CancellableConnection):
    """A TCP connection to a node."""


class NodeSSLConnection(_ReplacedWhenClosed, CancellableSSLConnection):
    """A TLS connection to a node."""


class ClusterClient(RedisCluster):
    """A client of a cluster; a burst of callers waits for its ``pool_size`` connections a node.

    redis-py's own refuses a command when all connections of a node are busy.
    """

    def __init__(self, *, pool_size: int, pool_wait: timedelta, ssl: bool, **settings: Any) -> None:
        super().__init__(max_connections=_UNLIMITED, ssl=ssl, **settings)
        # Its constructor takes no connection class; the nodes it discovers later are made of these arguments.
        connection_class = NodeSSLConnection if ssl else NodeConnection
        self.connection_kwargs["connection_class"] = connection_class
        for node in self.startup_nodes:
            node.connection_class = connection_class
        self.pool_size = pool_size
        self._free_slots = asyncio.Semaphore(pool_size)
        self._pool_wait_s = pool_wait.total_seconds()

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Send one command, once a connection is free."""
        async with self.connection_slot():
            await self.settle()
            return await super().execute_command(*args, **kwargs)

    async def settle(self) -> None:
        """Learn the nodes, if need be, and return when no connection is about to be closed for it.

        Having read the slots, redis-py closes its idle connections in the background, and would close those
        that a command has taken from the idle ones meanwhile.
        """
        await self.initialize()
        closing = self.nodes_manager._background_tasks  # noqa: SLF001 - there is no public way to wait for it
        if closing:
            await asyncio.wait(tuple(closing))

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
            await self._client.settle()
            return await super().execute(*args, **kwargs)


class _Subscription(ClusterPubSub):
    """A subscription in a cluster learns the nodes before it picks one, which redis-py's own does not."""

    def __init__(self, client: ClusterClient, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self._client = client

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        await self._client.settle()
        return await super().execute_command(*args, **kwargs)
