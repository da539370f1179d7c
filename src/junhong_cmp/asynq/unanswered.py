"""Dequeues whose reply got lost: the script may have run, and nobody knows of the tasks it took."""

import time
from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.scripting import LuaScript

log = structlog.stdlib.get_logger(__name__)

_PUT_BACK: Final = LuaScript.load("junhong_cmp.asynq", "put_back_unanswered")
_LOOK_AT_MOST: Final = 20_000
_REPEAT_S: Final = 1.0


class UnansweredDequeues:
    """Unanswered dequeues are remembered by their token; the tasks leased under it go back to their queue.

    A request that was under way when its connection died may still be carried out by a server that was slow
    to read it, so each is looked for again and again for as long as a lease lasts. After that the recovery
    of expired leases finds what is left.
    """

    def __init__(self, redis: RedisClient, remember_s: float) -> None:
        self._redis = redis
        self._remember_s = remember_s
        self._tokens: dict[str, dict[str, float]] = {}
        self._looked_at: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def add(self, queue: str, token: str) -> None:
        """Remember a dequeue of ``queue`` that brought no answer, and look for it at the next occasion."""
        self._tokens.setdefault(queue, {})[token] = time.monotonic()
        self._looked_at.pop(queue, None)

    async def put_back(self, queue: str, now: float) -> int:
        """Put the tasks of the lost dequeues of ``queue`` back to its head; return how many there were."""
        tokens = self._tokens.get(queue)
        began = time.monotonic()
        if not tokens or began - self._looked_at.get(queue, float("-inf")) < _REPEAT_S:
            return 0
        self._looked_at[queue] = began
        keys = queue_keys(queue)
        old = [token for token, added_at in tokens.items() if began - added_at > self._remember_s]
        try:
            count = int(
                await _PUT_BACK.run(
                    self._redis,
                    [keys.active, keys.lease, keys.pending],
                    [keys.task_prefix, int(now * 1e9), _LOOK_AT_MOST, *tokens],
                )
            )
        except BaseException:
            self._looked_at.pop(queue, None)
            raise
        self._forget(queue, old)
        if count:
            log.warning("取任务的应答丢失，任务已放回队列", queue=queue, count=count)
        return count

    def _forget(self, queue: str, tokens: list[str]) -> None:
        known = self._tokens.get(queue, {})
        for token in tokens:
            known.pop(token, None)  # another caller may have been here meanwhile
        if not known:
            self._tokens.pop(queue, None)
