"""Tasks as the inspector sees them (inspector.go: GetTaskInfo, List*Tasks)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_types import QUARANTINE_REASONS
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.inspector_errors import TaskNotFoundError
from junhong_cmp.asynq.inspector_places import place_args, place_keys
from junhong_cmp.asynq.inspector_types import TaskDetails
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import InvalidMessageError, decode
from junhong_cmp.asynq.scripting import LuaScript, ScriptCall
from junhong_cmp.asynq.states import TaskState

_READ: Final = LuaScript.load("junhong_cmp.asynq", "_places", "read_tasks")
_AT_ONCE: Final = 100
_WAITING: Final = frozenset({TaskState.SCHEDULED, TaskState.RETRY})


class TaskReader:
    """A task reader shows stored tasks; one whose message is broken is shown with the reason, not hidden."""

    def __init__(self, redis: RedisClient, clock: Callable[[], float]) -> None:
        self._redis = redis
        self._clock = clock

    async def read(self, queue: str, task_id: str) -> TaskDetails:
        """Return one task; :class:`TaskNotFoundError` if there is none."""
        found = await self._rows(queue, "", task_id, 0, 0)
        if not found:
            raise TaskNotFoundError(queue, task_id)
        return found[0]

    async def find(self, queues: Sequence[str], task_id: str) -> list[TaskDetails]:
        """Return the tasks of this id, of which each queue may hold one, in one round trip."""
        now = self._clock()
        calls = [_read_call(queue, now, "", task_id, 0, 0) for queue in queues]
        found: list[TaskDetails] = []
        for queue, rows in zip(queues, await _READ.run_many(self._redis, calls), strict=True):
            if isinstance(rows, Exception):
                raise rows
            found += _shown(queue, rows, now)
        return found

    async def page(
        self, queue: str, state: TaskState, *, group: str, first: int, count: int
    ) -> list[TaskDetails]:
        """Return up to ``count`` tasks of a state from rank ``first`` on, oldest first."""
        tasks: list[TaskDetails] = []
        for start in range(first, first + count, _AT_ONCE):
            end = min(start + _AT_ONCE, first + count)
            found = await self._rows(queue, state.value, group, start, end - 1)
            tasks += found
            if not found:
                break
        return tasks

    async def _rows(self, queue: str, state: str, subject: str, first: int, last: int) -> list[TaskDetails]:
        now = self._clock()
        keys, args = _read_call(queue, now, state, subject, first, last)
        return _shown(queue, await _READ.run(self._redis, keys, args), now)


_STATES: Final = {state.value.encode(): state for state in TaskState}


def _read_call(queue: str, now: float, state: str, subject: str, first: int, last: int) -> ScriptCall:
    keys = queue_keys(queue)
    return place_keys(keys), [*place_args(keys, now), state, subject, first, last]


def _shown(queue: str, rows: Sequence[Sequence[Any]], now: float) -> list[TaskDetails]:
    return [_details(queue, row, now) for row in rows if row[1] in _STATES]


def _details(queue: str, row: Sequence[Any], now: float) -> TaskDetails:
    raw_id, raw_state, score, raw, result, since, quarantined = row
    task_id, state = raw_id.decode(errors="replace"), _STATES[raw_state]
    reason = QUARANTINE_REASONS.get(quarantined) or quarantined.decode(errors="replace")
    message = TaskMessage()
    try:
        message = decode(raw, task_id=task_id, queue=queue)
    except InvalidMessageError as error:
        reason = reason or str(error)
    return TaskDetails(
        id=task_id,
        queue=queue,
        state=state,
        type=message.type,
        payload=message.payload,
        headers=dict(message.headers),
        max_retry=message.retry,
        retried=message.retried,
        last_error=message.error_msg,
        last_failed_at=_instant(message.last_failed_at),
        timeout=timedelta(seconds=message.timeout),
        deadline=_instant(message.deadline),
        group=message.group_key,
        retention=timedelta(seconds=message.retention),
        completed_at=_instant(message.completed_at),
        pending_since=_instant(int(since) / 1e9) if since.isdigit() else None,
        next_process_at=_next_run(state, score, now),
        result=result,
        orphaned=state is TaskState.ACTIVE and (not score or float(score) <= now),
        quarantined=reason,
    )


def _next_run(state: TaskState, score: bytes, now: float) -> datetime | None:
    if state is TaskState.PENDING:
        return _instant(now)
    return _instant(float(score)) if state in _WAITING and score else None


def _instant(unix_s: float) -> datetime | None:
    """Return an instant, None for 0 and for what no calendar holds: a foreign message may say anything."""
    if not unix_s:
        return None
    try:
        return datetime.fromtimestamp(unix_s, UTC)
    except (OverflowError, ValueError, OSError):
        return None
