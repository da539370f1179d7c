"""Groups of tasks become one task each, and interrupted attempts leave nothing behind."""

import asyncio
import inspect
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.aggregation import Aggregated, Aggregation, AggregationError
from junhong_cmp.asynq.broker_groups import SET_TIMEOUT, CommitOutcome, GatheredSet, Groups
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.errors import PayloadTooLargeError
from junhong_cmp.asynq.message import PreparedTask, prepare
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog, is_outage
from junhong_cmp.asynq.task import EnqueueOptions, Task

log = structlog.stdlib.get_logger(__name__)

_AT_ONCE: Final = 3
_LONGEST_INTERVAL: Final = timedelta(seconds=7)
_COMMIT_RESERVE: Final = timedelta(seconds=10)
"""What the aggregator must leave of a set's time for the task to be written."""
_PUT_BACK_WAIT_S: Final = 0.2


class Aggregator:
    """An aggregator looks at the groups of all queues in turn and turns those that are ready into tasks.

    In two phases, each one script: the tasks are set apart, then the task made of them is enqueued while
    they are deleted. A set that is not finished, because the callback failed or the process died, is put
    back after its time by any server.
    """

    def __init__(
        self, groups: Groups, rules: Aggregation, queues: Sequence[str], backoff_cap: timedelta
    ) -> None:
        self._groups = groups
        self._rules = rules
        self._queues = queues
        self._interval_s = min(_LONGEST_INTERVAL, rules.grace).total_seconds()
        self._backoff = Backoff(backoff_cap)
        self._outage = OutageLog("分组汇总")
        self._open: dict[bytes, GatheredSet] = {}
        self._spoiled: set[tuple[str, bytes]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Look at all groups, at once and then at an interval, until :meth:`stop`."""
        while not self._stopping.is_set():
            try:
                await self._round()
            except FAULTS as error:
                self._outage.failed(error)
                pause_s = min(self._backoff.next_delay(), self._interval_s)
            else:
                self._outage.worked()
                self._backoff.reset()
                pause_s = self._interval_s
            try:
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    def stop(self) -> None:
        """Begin no further set."""
        self._stopping.set()

    async def put_back(self) -> None:
        """Put back what was set apart and not finished; what cannot be waits for the end of its time."""
        try:
            async with asyncio.timeout(_PUT_BACK_WAIT_S):
                for gathered in list(self._open.values()):
                    await self._groups.put_back(gathered)
                    del self._open[gathered.key]
        except FAULTS as error:
            log.info("停止时未能放回分组任务，到期后将自动放回", error_type=type(error).__name__)

    async def _round(self) -> None:
        for gathered in list(
            self._open.values()
        ):  # of a round that was cut off: what became of it is unknown
            await self._groups.put_back(gathered)
            del self._open[gathered.key]
        waiting = [(queue, name) for queue in self._queues for name in await self._names(queue)]
        turns = iter(waiting)
        workers = [asyncio.create_task(self._work(turns)) for _ in range(min(_AT_ONCE, len(waiting)))]
        try:
            await asyncio.gather(*workers)
        finally:
            await end_tasks(workers)

    async def _work(self, turns: Iterator[tuple[str, bytes]]) -> None:
        for queue, group in turns:
            while not self._stopping.is_set() and await self._try_aggregate(queue, group):
                pass  # there is a full set more, perhaps

    async def _names(self, queue: str) -> list[bytes]:
        try:
            return await self._groups.names(queue)
        except FAULTS as error:
            self._pass_over(queue, b"", error)
            return []

    async def _try_aggregate(self, queue: str, group: bytes) -> bool:
        """Look at one group; one whose keys hold something foreign does not keep others from their turn."""
        try:
            again = await self._aggregate(queue, group)
        except FAULTS as error:
            self._pass_over(queue, group, error)
            return False
        self._spoiled.discard((queue, group))
        return again

    def _pass_over(self, queue: str, group: bytes, error: Exception) -> None:
        """Tell once of a group, or of all of a queue, that cannot be read; raise what concerns all Redis."""
        if is_outage(error):
            raise error
        if (queue, group) not in self._spoiled:
            self._spoiled.add((queue, group))
            log.error("分组无法汇总，已跳过", queue=queue, group=_text(group), error=str(error))

    async def _aggregate(self, queue: str, group: bytes) -> bool:
        """Turn one set of a group into a task, if it is time; say whether to look again at once."""
        gathered = GatheredSet.plan(queue, group)
        began = time.monotonic()
        self._open[gathered.key] = gathered
        if not await self._groups.gather(gathered, self._rules):
            del self._open[gathered.key]
            return False
        task = await self._make_task(gathered)
        done = task is not None and await self._commit(gathered, task, began + SET_TIMEOUT.total_seconds())
        del self._open[gathered.key]
        return done and len(gathered.messages) == self._rules.max_size

    async def _make_task(self, gathered: GatheredSet) -> PreparedTask | None:
        """Ask the callback for the task; None if it gave none that can be used."""
        try:
            async with asyncio.timeout((SET_TIMEOUT - _COMMIT_RESERVE).total_seconds()):
                answer = self._rules.aggregator(_text(gathered.group), _tasks(gathered))
                aggregated = await answer if inspect.isawaitable(answer) else answer
            return self._prepare(gathered, aggregated)
        except BaseException as error:
            # Not even SystemExit of a callback may end the server; only the aggregator's own end goes on up.
            worker = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and worker is not None and worker.cancelling():
                raise
            log.exception("分组汇总失败，任务保留，稍后重试", **_facts(gathered))
            return None

    def _prepare(self, gathered: GatheredSet, aggregated: Aggregated) -> PreparedTask:
        task, options = (aggregated, EnqueueOptions()) if isinstance(aggregated, Task) else aggregated
        if not isinstance(task, Task):
            raise AggregationError("分组汇总必须返回任务")
        prepared = prepare(task, replace(options, queue=gathered.queue), time.time())
        size = prepared.message.ByteSize()
        if size > self._groups.max_message_bytes:
            raise PayloadTooLargeError(size, self._groups.max_message_bytes)
        return prepared

    async def _commit(self, gathered: GatheredSet, task: PreparedTask, until: float) -> bool:
        """Write the task, again and again while Redis is away and the set is surely still ours."""
        while True:
            try:
                outcome = await self._groups.commit(gathered, task)
                break
            except FAULTS as error:
                self._outage.failed(error)
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(self._backoff.next_delay())
        if outcome is CommitOutcome.COMMITTED:
            log.debug("分组任务已汇总", task_id=task.message.id, **_facts(gathered))
            return True
        if outcome is not CommitOutcome.GONE:
            log.warning("汇总出的任务与已有任务冲突，分组任务保留", outcome=outcome.name, **_facts(gathered))
        return False


class GroupKeeper:
    """A group keeper puts interrupted sets back, and warns of groups nobody in this server aggregates."""

    def __init__(self, groups: Groups, *, aggregates: bool) -> None:
        self._groups = groups
        self._aggregates = aggregates
        self._told: set[str] = set()

    async def keep(self, queue: str) -> None:
        """Look after the groups of one queue."""
        count = await self._groups.reclaim(queue)
        if count:
            log.warning("中断的分组汇总已放回", queue=queue, count=count)
        if self._aggregates:
            return
        groups = await self._groups.count(queue)
        if groups and queue not in self._told:
            self._told.add(queue)
            log.warning("队列中有分组任务等待，但本服务器没有配置分组汇总", queue=queue, groups=groups)
        elif not groups:
            self._told.discard(queue)


def _tasks(gathered: GatheredSet) -> list[Task]:
    return [Task(message.type, message.payload, dict(message.headers)) for message in gathered.messages]


def _facts(gathered: GatheredSet) -> dict[str, object]:
    return {"queue": gathered.queue, "group": _text(gathered.group), "count": len(gathered.messages)}


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
