"""How long tasks wait to be picked up, by tasks that are sent at a steady pace."""

import asyncio
import struct
import time
from pathlib import Path
from typing import Final, Self

from import_bench.worker import FORM, PROBE
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

_PAUSE_S: Final = 0.02
_OPTIONS: Final = EnqueueOptions(queue="default", max_retry=0)


class Probes:
    """Probes are sent fifty times a second while their block lasts."""

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
            await self._client.enqueue(Task(PROBE, struct.pack("<d", time.time())), _OPTIONS)
            await asyncio.sleep(_PAUSE_S)


def waits(record: Path, since: float, until: float) -> list[float]:
    """Return how long the probes sent in that span waited, the shortest first."""
    found = FORM.iter_unpack(record.read_bytes())
    return sorted(waited for sent, waited in found if since <= sent < until)


def p99(values: list[float]) -> float:
    """Return the 99th percentile of sorted values."""
    return values[min(len(values) - 1, len(values) * 99 // 100)]
