"""Access tokens of carriers: fetched once for everybody who waits, renewed before they run out."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import AuthRejected, Transient
from junhong_cmp.gateway.signing import Credential

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

_EARLY_SHARE: Final = 0.1
_MOST_EARLY: Final = timedelta(minutes=5)
_RENEW_AGAIN: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and how long the carrier says it lives from now; no repr shows it."""

    value: str = field(repr=False)
    lifetime: timedelta


class TokenExpiredError(Exception):
    """The carrier no longer accepts the token a call was made with; drivers raise it inside a token store."""


Fetch = Callable[[], Awaitable[Token]]
"""Asks the carrier for a new token; raises ``GatewayError``."""

_Key = tuple[int, str, str]


@dataclass(slots=True)
class _Held:
    value: str = field(repr=False)
    renew_at_s: float
    ends_at_s: float


class TokenStore:
    """A token store keeps one token for each account and credential, and fetches each once for all waiters.

    In the last tenth of its life, five minutes at most, a token is still used while the next one is being
    fetched. A fetch belongs to nobody: a waiter that is cancelled leaves it running for the others, and one
    that fails fails everybody who waits for it, once; whoever comes after that tries again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[_Key, _Held] = {}
        self._fetches: dict[_Key, asyncio.Task[_Held]] = {}

    async def use(
        self,
        account: GatewayAccount,
        credential: Credential,
        fetch: Fetch,
        call: Callable[[str], Awaitable[T]],
    ) -> T:
        """Make a call with a good token; if that has expired, once more with a new one.

        Raises:
            AuthRejected: the carrier calls a token expired that it gave us just now.
            GatewayError: what the fetch or the call raised.

        """
        key = (account.id, credential.key_id, credential.secret)
        held = await self._get(key, fetch)
        try:
            return await call(held.value)
        except TokenExpiredError:
            self._drop(key, held)
        held = await self._get(key, fetch)
        try:
            return await call(held.value)
        except TokenExpiredError as error:
            self._drop(key, held)
            raise AuthRejected("网关不接受刚刚取得的令牌") from error

    async def close(self) -> None:
        """End the fetches under way; those who wait for them get a ``Transient``."""
        fetches = tuple(self._fetches.values())
        for task in fetches:
            task.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)

    async def _get(self, key: _Key, fetch: Fetch) -> _Held:
        held, now_s = self._held.get(key), self._clock.monotonic()
        if held is not None and now_s < held.ends_at_s:
            if now_s >= held.renew_at_s and key not in self._fetches:
                held.renew_at_s = now_s + _RENEW_AGAIN.total_seconds()  # if this one fails
                self._begin(key, fetch)
            return held
        task = self._fetches.get(key) or self._begin(key, fetch)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelled():
                raise Transient("网关客户端已关闭", maybe_executed=False) from None
            raise

    def _begin(self, key: _Key, fetch: Fetch) -> asyncio.Task[_Held]:
        task = asyncio.create_task(self._fetch(key, fetch), name="gateway-token")
        self._fetches[key] = task
        task.add_done_callback(lambda done: self._end(key, done))
        return task

    async def _fetch(self, key: _Key, fetch: Fetch) -> _Held:
        asked_at_s = self._clock.monotonic()
        token = await fetch()
        early = min(token.lifetime * _EARLY_SHARE, _MOST_EARLY)
        ends_at_s = asked_at_s + token.lifetime.total_seconds()
        held = _Held(token.value, ends_at_s - early.total_seconds(), ends_at_s)
        now_s = self._clock.monotonic()
        self._held = {other: kept for other, kept in self._held.items() if kept.ends_at_s > now_s}
        self._held[key] = held
        return held

    def _end(self, key: _Key, done: asyncio.Task[_Held]) -> None:
        del self._fetches[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            # Whoever waits is told; when a token was renewed early, nobody does.
            log.warning("网关令牌未能取得", account_id=key[0], cause=str(error))

    def _drop(self, key: _Key, held: _Held) -> None:
        """Forget a token, unless somebody has fetched a newer one since."""
        if self._held.get(key) is held:
            del self._held[key]


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
