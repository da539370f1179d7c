"""Probes sent at a steady pace: how long other tasks wait to be picked up."""

import asyncio
from typing import Final, Self

from import_bench.probe_record import BYSTANDER_QUEUE, PROBE, WORKER_QUEUE, make_probe
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

_PAUSE_S: Final = 0.01
_OPTIONS: Final = [EnqueueOptions(queue=queue, max_retry=0) for queue in (WORKER_QUEUE, BYSTANDER_QUEUE)]


class Probes:
    """Probes are sent while their block lasts, close to fifty a second to each queue, in turns."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while True:
            for options in _OPTIONS:
                await self._client.enqueue(Task(PROBE, make_probe()), options)
                await asyncio.sleep(_PAUSE_S)
