"""Operators cancel running tasks over a channel."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from junhong_cmp.asynq.cancel_requests import CancelRequest, decode_request
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import CANCEL_CHANNEL
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog

_POLL_S = 30.0
"""How long one read waits; between reads a ping finds out whether the connection still lives."""


class Subscriber:
    """A subscriber hears which tasks to cancel and passes each on; it subscribes again for ever."""

    def __init__(
        self, redis: RedisClient, on_cancel: Callable[[CancelRequest], None], backoff_cap: timedelta
    ) -> None:
        self._redis = redis
        self._on_cancel = on_cancel
        self._backoff = Backoff(backoff_cap)
        self._outage = OutageLog("监听取消指令")

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self._listen()
            except FAULTS as error:
                self._outage.failed(error)
                await asyncio.sleep(self._backoff.next_delay())

    async def _listen(self) -> None:
        subscription = self._redis.pubsub()
        try:
            await subscription.subscribe(CANCEL_CHANNEL)
            while True:
                message = await subscription.get_message(ignore_subscribe_messages=False, timeout=_POLL_S)
                if message is None:
                    await subscription.ping()
                    continue
                self._outage.worked()
                self._backoff.reset()
                if message["type"] == "message":
                    self._on_cancel(decode_request(bytes(message["data"])))
        finally:
            await subscription.aclose()
