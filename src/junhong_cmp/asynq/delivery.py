"""From a stored message to what a handler sees."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_types import LeasedTask
from junhong_cmp.asynq.processing_task import ProcessingTask, ResultSink, discard_result

_DEFAULT_TIMEOUT_S = 30 * 60
"""Asynq's limit for a task that names neither timeout nor deadline."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_LATEST_UNIX_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def find_deadline_s(message: TaskMessage, now_s: float) -> float:
    """Return the unix second at which the handler is cancelled.

    The earlier of timeout and deadline, as in Asynq; a foreign producer's figures
    below zero count as unset.
    """
    limits = [now_s + message.timeout] if message.timeout > 0 else []
    if message.deadline > 0:
        limits.append(message.deadline)
    return min(*limits, _LATEST_UNIX_S) if limits else now_s + _DEFAULT_TIMEOUT_S


def view_task(
    leased: LeasedTask,
    deadline_s: float,
    draining: asyncio.Event | None = None,
    result_sink: ResultSink = discard_result,
) -> ProcessingTask:
    """Return ``leased`` as its handler sees it."""
    message = leased.message
    return ProcessingTask(
        id=message.id,
        type=message.type,
        payload=message.payload,
        headers=dict(message.headers) if message.headers else _NO_HEADERS,
        queue=leased.queue,
        retried=message.retried,
        max_retry=message.retry,
        deadline=datetime.fromtimestamp(deadline_s, UTC),
        draining=draining if draining is not None else asyncio.Event(),
        result_sink=result_sink,
    )
