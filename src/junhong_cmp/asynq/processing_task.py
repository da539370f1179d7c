"""A task in the hands of a handler, and what a handler is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

ResultSink = Callable[[bytes], Awaitable[None]]


async def discard_result(data: bytes) -> None:
    """Drop ``data``: the sink of a task that no server delivered, e.g. in a handler's own test."""


@dataclass(slots=True, kw_only=True)
class ProcessingTask:
    """A processing task is one delivery of a task to a handler.

    Delivery is at least once: the same ``id`` may come again after a crash, so a
    handler's effects must bear being repeated. ``deadline`` is when the server
    cancels the handler; ``draining`` is set when the server begins to stop, so
    that a long handler can end early at a place of its own choice.
    """

    id: str
    type: str
    deadline: datetime
    payload: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    queue: str = "default"
    retried: int = 0
    max_retry: int = 25
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    result_sink: ResultSink = discard_result

    async def write_result(self, data: bytes) -> None:
        """Store ``data`` as the task's result; it is kept as long as the task's retention says."""
        await self.result_sink(data)


class Handler(Protocol):
    """What a server needs in order to process tasks.

    Returning means done. Raising means: ``PutBack`` again later without counting
    a failure, ``SkipRetry`` archive now, ``RevokeTask`` drop, anything else retry
    with a growing delay until the task's retries are used up, then archive.
    """

    async def process_task(self, task: ProcessingTask) -> None:
        """Do the work of one task."""
        ...
