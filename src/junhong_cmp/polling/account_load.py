"""What accounts can take: the calls they have in flight, and the rate their carriers grant.

A carrier that refuses part of the calls as coming too fast is asked at the rate it grants: lowered by a share
when it refuses, raised little by little up to the configured one, known to all processes through Redis.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import structlog

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import is_outage
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling import keys
from junhong_cmp.polling.rare_log import RareLog

log = structlog.stdlib.get_logger(__name__)

_PACKAGE: Final = __package__ or ""
_LEFT: Final = 0.7
"""What a refusal leaves of the rate: it is near what the carrier grants, or was until a moment ago."""
_LEFT_AT_ONCE: Final = 0.5
"""What it leaves where the rate was lowered within ``_AT_ONCE``: it is still far from what is granted."""
_AT_ONCE: Final = timedelta(seconds=15)
_LOWEST: Final = 0.1
"""Calls a second that are always tried: how else is a carrier that recovers to be found out about?"""
_REGROWN_S: Final = 60
"""Seconds in which the rate grows by what it was lowered to: one refusal every half minute."""
_RESTORED_S: Final = 3600
"""Seconds in which it has grown to the configured one, however low it was."""


class AccountLoad(NamedTuple):
    """Calls of an account in flight, and the calls a second it may be asked at now."""

    in_flight: int
    qps: float


class AccountLoads:
    """Account loads are told by Redis, for all processes together; refusals lower the rate in them."""

    def __init__(self, redis: RedisClient, *, once_within: timedelta = timedelta(seconds=3)) -> None:
        self._redis = redis
        self._once_within = once_within
        self._load = LuaScript.load(_PACKAGE, "granted", "load")
        self._ease = LuaScript.load(_PACKAGE, "granted", "ease")
        self._rare = RareLog()

    async def read(self, accounts: Sequence[CarrierAccount]) -> dict[int, AccountLoad]:
        """Return the load of each account.

        An account with a foreign value under its keys is missing from the answer: nothing of it is admitted
        either, and the others go on.
        """
        if not accounts:
            return {}
        calls = [
            ((keys.account_slots(each.id), keys.account_granted(each.id)), (each.qps,)) for each in accounts
        ]
        loads: dict[int, AccountLoad] = {}
        replies = await self._load.run_many(self._redis, calls)
        for account, reply in zip(accounts, replies, strict=True):
            if not isinstance(reply, Exception):
                loads[account.id] = AccountLoad(int(reply[0]), float(reply[1]))
            elif is_outage(reply):
                raise reply
            else:
                self._rare.warning(
                    "账号的在途名额无法读取，暂不认领", account_id=account.id, error=str(reply)
                )
        return loads

    async def refused(self, account: CarrierAccount) -> None:
        """Lower the account's rate, unless somebody just did; a carrier has refused a call as too fast."""
        shares = (_LEFT, _LEFT_AT_ONCE, _microseconds(_AT_ONCE))
        args = (account.qps, _microseconds(self._once_within), *shares, _LOWEST, _REGROWN_S, _RESTORED_S)
        lowered: Any = await self._ease.run(self._redis, (keys.account_granted(account.id),), args)
        if lowered:
            log.warning(
                "账号被限流，下调调用速率", account=account.code, qps=float(lowered), configured=account.qps
            )


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
