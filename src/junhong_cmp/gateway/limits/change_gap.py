"""The rest that carriers demand of a card between two changes, kept over the whole fleet."""

from datetime import timedelta
from typing import Final, Protocol

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import CardResting, Transient
from junhong_cmp.gateway.limits import keys

log = structlog.stdlib.get_logger(__name__)

_TAKE: Final = LuaScript.load(__package__ or "", "take_change")
_RETURN: Final = LuaScript.load(__package__ or "", "return_change")
_ONE_MS: Final = timedelta(milliseconds=1)


class ChangeGap(Protocol):
    """Spaces the changes of each card."""

    async def take(self, card: CardRef, request_id: str, rest: timedelta) -> None:
        """Return if the card may be changed now; then it rests for ``rest``, whatever becomes of us.

        Raises:
            CardResting: it was changed too recently.
            Transient: nobody can tell; nothing was sent.

        """
        ...

    async def give_back(self, card: CardRef, request_id: str) -> None:
        """Let the card be changed again at once: nothing was sent after all."""
        ...


class RedisChangeGap:
    """A Redis change gap keeps one expiring key for each card that rests."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def take(self, card: CardRef, request_id: str, rest: timedelta) -> None:
        """Return if the card may be changed now."""
        rest_ms = rest // _ONE_MS
        if rest_ms <= 0:
            return
        try:
            left_ms = int(
                await _TAKE.run(self._redis, [keys.last_change(card.card_id)], [request_id, rest_ms])
            )
        except FAULTS as error:
            raise Transient("无法确认卡的变更间隔，未发送", maybe_executed=False) from error
        if left_ms:
            raise CardResting("此卡变更过于频繁，稍后再试", timedelta(milliseconds=left_ms))

    async def give_back(self, card: CardRef, request_id: str) -> None:
        """Let the card be changed again at once; if Redis is away, after its rest."""
        try:
            await _RETURN.run(self._redis, [keys.last_change(card.card_id)], [request_id])
        except FAULTS as error:
            log.warning("卡的变更间隔未能退回，将自行到期", card_id=card.card_id, error=type(error).__name__)


class NoChangeGap:
    """No change gap lets every change pass: for carriers and tests that demand no rest."""

    async def take(self, card: CardRef, request_id: str, rest: timedelta) -> None:
        """Return."""

    async def give_back(self, card: CardRef, request_id: str) -> None:
        """Return."""
