"""Learning that an empty queue has work again, without asking all the time."""

import asyncio
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from junhong_cmp.asynq.connection import RedisClient, pool_size_of
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.outages import Backoff, OutageLog
from junhong_cmp.asynq.server_config import Intervals

_REPLY_MARGIN_S = 5.0
"""How much longer than the blocking time a reply may take before the connection counts as dead."""
_OTHER_CONNECTIONS = 2
"""Of the blocking client, besides one a watch: the cancel channel's, and one to poll with."""


class _State(Enum):
    AWAKE = auto()  # may have work: ask it
    ASLEEP = auto()  # was empty, nobody watches it
    WATCHED = auto()  # a blocking command waits for its next task
    POLLED = auto()  # no connection left to watch it with: looked at together with others like it
    PAUSED = auto()  # has a pause mark: look again after a while


class Wakeups:
    """Wakeups keep, for each queue, whether it may have work, and find out when that changes.

    A queue found empty is watched by ``BLMOVE pending pending RIGHT RIGHT``: it
    moves an id onto its own place, so it changes nothing, loses nothing when its
    reply is lost, and works with any producer. A watch is asked for anew each
    time, by a fetcher that has free slots. A watch that fails wakes the queue
    after a back-off: with the blocking connection away the queue is polled.

    A watch needs a connection. The queues named first have them; those the pool
    has none for are looked at every ``unwatched_check``, all in one round trip.
    """

    def __init__(
        self, redis: RedisClient, queues: Iterable[str], intervals: Intervals, signal: asyncio.Event
    ) -> None:
        self._redis = redis
        self._states = dict.fromkeys(queues, _State.AWAKE)
        self._intervals = intervals
        self._signal = signal
        self._watch_asked = {queue: asyncio.Event() for queue in self._states}
        self._free_watches = max(1, pool_size_of(redis) - _OTHER_CONNECTIONS)
        self._poll_asked = asyncio.Event()
        self._watchers: list[asyncio.Task[None]] = []
        self._pause_timers: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Start one watcher a queue and one poller; none sends anything before it is asked to."""
        self._watchers = [asyncio.create_task(self._watch_queue(queue)) for queue in self._states]
        self._watchers.append(asyncio.create_task(self._poll_unwatched()))

    async def stop(self) -> None:
        """Give up all blocking commands."""
        for timer in self._pause_timers.values():
            timer.cancel()
        await end_tasks(self._watchers)

    def ready(self) -> list[str]:
        """Return the queues that may have work."""
        return [queue for queue, state in self._states.items() if state is _State.AWAKE]

    def found_empty(self, queue: str) -> None:
        """Note that ``queue`` gave less than was asked of it.

        Two fetchers may find it so, one after the other. The second must not have it watched again: the
        watch that the first one led to is on its way already, and will find what comes in.
        """
        if self._states[queue] is _State.AWAKE:
            self._states[queue] = _State.ASLEEP

    def found_paused(self, queue: str) -> None:
        """Note that ``queue`` is paused, or cannot be read; it is asked again after a while."""
        if self._states[queue] is _State.PAUSED:
            return  # the other of two fetchers was first
        self._states[queue] = _State.PAUSED
        delay = self._intervals.paused_check.total_seconds()
        self._pause_timers[queue] = asyncio.get_running_loop().call_later(delay, self._wake, queue)

    def watch_sleeping(self) -> None:
        """Wait for work of every queue that nobody watches; called while there are free slots."""
        for queue, state in self._states.items():
            if state is not _State.ASLEEP:
                continue
            if self._free_watches:
                self._free_watches -= 1
                self._states[queue] = _State.WATCHED
                self._watch_asked[queue].set()
            else:
                self._states[queue] = _State.POLLED
                self._poll_asked.set()

    def _wake(self, queue: str) -> None:
        self._states[queue] = _State.AWAKE
        self._signal.set()

    async def _watch_queue(self, queue: str) -> None:
        backoff = Backoff(self._intervals.backoff_cap)
        outage = OutageLog(f"等待新任务：{queue}")
        while True:
            await self._watch_asked[queue].wait()
            self._watch_asked[queue].clear()
            try:
                moved = await self._wait_for_task(queue)
            except Exception as error:  # noqa: BLE001 - whatever it was: a queue nobody watches must be asked
                outage.failed(error)
                await asyncio.sleep(backoff.next_delay())
                self._free_watches += 1
                self._wake(queue)
                continue
            self._free_watches += 1
            outage.worked()
            backoff.reset()
            if moved:
                self._wake(queue)
            else:
                self._states[queue] = _State.ASLEEP
                self._signal.set()

    async def _wait_for_task(self, queue: str) -> bool:
        pending = queue_keys(queue).pending
        wait_s = self._intervals.blocking_wait.total_seconds()
        async with asyncio.timeout(wait_s + _REPLY_MARGIN_S):
            moved = await self._redis.execute_command("BLMOVE", pending, pending, "RIGHT", "RIGHT", wait_s)
        return moved is not None

    async def _poll_unwatched(self) -> None:
        backoff = Backoff(self._intervals.backoff_cap)
        outage = OutageLog("查看未被监视的队列")
        while True:
            await self._poll_asked.wait()
            await asyncio.sleep(self._intervals.unwatched_check.total_seconds())
            self._poll_asked.clear()
            queues = [queue for queue, state in self._states.items() if state is _State.POLLED]
            try:
                found = await self._look(queues)
            except Exception as error:  # noqa: BLE001 - as above: a queue nobody looks at must be asked
                outage.failed(error)
                await asyncio.sleep(backoff.next_delay())
                found = [True] * len(queues)
            else:
                outage.worked()
                backoff.reset()
            for queue, waiting in zip(queues, found, strict=True):
                self._states[queue] = _State.AWAKE if waiting else _State.ASLEEP
            self._signal.set()

    async def _look(self, queues: Sequence[str]) -> list[bool]:
        """Return which queues have tasks; a spoiled one counts, asking it will tell what is wrong."""
        pipe = self._redis.pipeline(transaction=False)
        for queue in queues:
            pipe.execute_command("LLEN", queue_keys(queue).pending)
        async with asyncio.timeout(_REPLY_MARGIN_S):
            return [reply != 0 for reply in await pipe.execute(raise_on_error=False)]
