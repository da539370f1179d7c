"""The server: it takes tasks from queues, runs handlers and writes back what became of each task."""

from collections.abc import Callable
from dataclasses import dataclass

from .connection import RedisClient
from .processing_task import Handler
from .server_config import ServerConfig


@dataclass(frozen=True, slots=True)
class StopReport:
    """What became of the tasks that were running when the server was asked to stop."""

    completed: int
    """Ended by themselves, with success or failure, within the grace period."""
    requeued: int
    """Cancelled and put back at the head of their queue."""
    abandoned: int
    """Still running although cancelled; their leases lapse and another worker takes them."""


class Server:
    """A server processes the tasks of its queues until it is stopped.

    It owns neither client: the caller closes them after :meth:`stop`.
    ``blocking_redis`` is used for blocking waits and for the cancel channel only.
    ``heartbeat_redis`` opens a client that the server does own; with it, leases
    are kept by a thread of their own and survive a blocked event loop.
    """

    def __init__(
        self,
        redis: RedisClient,
        blocking_redis: RedisClient,
        handler: Handler,
        config: ServerConfig,
        *,
        heartbeat_redis: Callable[[], RedisClient] | None = None,
    ) -> None:
        self._redis = redis
        self._blocking_redis = blocking_redis
        self._handler = handler
        self._config = config
        self._open_heartbeat_redis = heartbeat_redis

    @property
    def in_flight(self) -> int:
        """Number of handlers running now."""
        return 0

    async def start(self) -> None:
        """Start fetching; needs no reachable Redis, a server waits for it with back-off."""

    def pause_fetching(self) -> None:
        """Take no further tasks (SIGTSTP); what runs goes on, and so do leases and acks."""

    async def stop(self) -> StopReport:
        """Drain and stop; asked again, return the same report.

        Handlers get the grace period to end, then are cancelled; the unfinished
        tasks go back to the head of their queues. Returns within the grace period
        plus two seconds whatever Redis does.
        """
        return StopReport(completed=0, requeued=0, abandoned=0)
