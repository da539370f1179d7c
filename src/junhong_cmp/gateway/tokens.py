"""Access tokens of carriers: fetched once for everybody who waits, renewed before they run out."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import AuthRejected, GatewayError
from junhong_cmp.gateway.signing import Credential

T = TypeVar("T")

_EARLY_SHARE: Final = 0.1
_MOST_EARLY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and how long the carrier says it lives from now; no repr shows it."""

    value: str = field(repr=False)
    lifetime: timedelta


class TokenExpiredError(Exception):
    """The carrier no longer accepts the token a call was made with; drivers raise it inside a token store."""


Fetch = Callable[[], Awaitable[Token]]
"""Asks the carrier for a new token; raises ``GatewayError``."""


@dataclass(slots=True)
class _Held:
    token: Token
    renew_at_s: float


class TokenStore:
    """A token store keeps one token for each account and credential, and fetches each once for all waiters.

    A fetch belongs to nobody: a waiter that is cancelled leaves it running for the others, and one that
    fails fails everybody who waits for it, once; whoever comes after it tries again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[_Key, _Held] = {}
        self._fetches: dict[_Key, asyncio.Task[Token]] = {}

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
        key = _key_of(account, credential)
        token = await self._get(key, fetch)
        try:
            return await call(token.value)
        except TokenExpiredError:
            self._drop(key, token)
        token = await self._get(key, fetch)
        try:
            return await call(token.value)
        except TokenExpiredError as error:
            self._drop(key, token)
            raise AuthRejected("网关不接受刚刚取得的令牌") from error

    async def close(self) -> None:
        """End the fetches under way; those who wait for them are cancelled."""
        fetches = tuple(self._fetches.values())
        for task in fetches:
            task.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)

    async def _get(self, key: "_Key", fetch: Fetch) -> Token:
        held = self._held.get(key)
        if held is not None and self._clock.monotonic() < held.renew_at_s:
            return held.token
        task = self._fetches.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(key, fetch), name="gateway-token")
            self._fetches[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    async def _fetch(self, key: "_Key", fetch: Fetch) -> Token:
        asked_at_s = self._clock.monotonic()
        token = await fetch()
        early = min(token.lifetime * _EARLY_SHARE, _MOST_EARLY)
        self._held[key] = _Held(token, asked_at_s + (token.lifetime - early).total_seconds())
        return token

    def _forget(self, key: "_Key", done: asyncio.Task[Token]) -> None:
        if self._fetches.get(key) is done:
            del self._fetches[key]
        if not done.cancelled() and isinstance(done.exception(), GatewayError):
            return  # told to those who waited; if none is left, there is nobody to tell

    def _drop(self, key: "_Key", token: Token) -> None:
        """Forget a token, unless somebody has fetched a newer one since."""
        held = self._held.get(key)
        if held is not None and held.token is token:
            del self._held[key]


_Key = tuple[int, str, str]


def _key_of(account: GatewayAccount, credential: Credential) -> _Key:
    return account.id, credential.key_id, credential.secret
