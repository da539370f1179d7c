"""How many polls of an account may be in flight, how fast they may follow, and never two of a card."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS, is_outage
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.polling import keys
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.tasks import TaskType

_PACKAGE: Final = __package__ or ""
_BURST_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Slot:
    """An in-flight slot, held until ``lease`` (unix ms) at the latest; call after ``wait_s`` seconds."""

    account_id: int
    member: str
    lease: int
    wait_s: float


class Refusal(Enum):
    """Why a poll was not admitted."""

    SATURATED = -1
    IN_FLIGHT = -2


@dataclass(frozen=True, slots=True)
class _Request:
    account: CarrierAccount
    member: str


class AccountConcurrency:
    """An account concurrency admits polls: a slot for each card in flight, a token for each call.

    Slots are leases named after the card, so those of a crashed process run out by themselves.
    Tokens are taken in blocks: all requests that gathered go to Redis in one script an account,
    and each is told how long to wait for its own.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        slot_lease: timedelta = timedelta(seconds=75),
        rate_wait: timedelta = timedelta(seconds=2),
    ) -> None:
        self._redis = redis
        self._lease_ms = milliseconds(slot_lease)
        self._wait_ms = milliseconds(rate_wait)
        self._rare = RareLog()
        self._admit = LuaScript.load(_PACKAGE, "admit")
        self._release = LuaScript.load(_PACKAGE, "release")
        self._in_flight = LuaScript.load(_PACKAGE, "in_flight")
        self._admissions: MicroBatcher[_Request, Slot | Refusal] = MicroBatcher(
            self._flush_admissions, name="polling_admit"
        )
        self._releases: MicroBatcher[Slot, None] = MicroBatcher(self._flush_releases, name="polling_release")

    async def close(self) -> None:
        """Finish the batches under way."""
        await self._admissions.close()
        await self._releases.close()

    async def acquire(self, account: CarrierAccount, task_type: TaskType, card_id: int) -> Slot | Refusal:
        """Take a slot and a token for one poll; a refused poll holds neither."""
        return await self._admissions.submit(_Request(account, f"{task_type.kind}:{card_id}"))

    async def release(self, slot: Slot) -> None:
        """Give the slot back; one whose lease ran out is left to its next holder."""
        await self._releases.submit(slot)

    async def in_flight(self, account_ids: Sequence[int]) -> dict[int, int]:
        """Return how many polls of each account are in flight, in all processes together.

        An account with a foreign value under its key is missing from the answer: nothing of it is
        admitted either, and the others go on.
        """
        calls = [((keys.account_slots(account_id),), ()) for account_id in account_ids]
        if not calls:
            return {}
        counts: dict[int, int] = {}
        replies = await self._in_flight.run_many(self._redis, calls)
        for account_id, reply in zip(account_ids, replies, strict=True):
            if not isinstance(reply, Exception):
                counts[account_id] = int(reply)
            elif is_outage(reply):
                raise reply
            else:
                self._rare.warning(
                    "账号的在途名额无法读取，暂不认领", account_id=account_id, error=str(reply)
                )
        return counts

    async def _flush_admissions(self, requests: Sequence[_Request]) -> Sequence[Slot | Refusal | Exception]:
        places: dict[int, list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            places[request.account.id].append(place)
        calls = [
            (
                (keys.account_slots(account_id), keys.account_rate(account_id)),
                self._admission(requests[asking[0]].account, [requests[place].member for place in asking]),
            )
            for account_id, asking in places.items()
        ]
        try:
            replies = await self._admit.run_many(self._redis, calls)
        except FAULTS as error:  # told to each caller: raising would have the batch halved and tried again
            return [error] * len(requests)
        results: dict[int, Slot | Refusal | Exception] = {}
        for (account_id, asking), reply in zip(places.items(), replies, strict=True):
            for index, place in enumerate(asking, start=1):
                if isinstance(reply, Exception):
                    results[place] = reply
                elif reply[index] < 0:
                    results[place] = Refusal(reply[index])
                else:
                    member = requests[place].member
                    results[place] = Slot(account_id, member, int(reply[0]), reply[index] / 1000)
        return [results[place] for place in range(len(requests))]

    def _admission(self, account: CarrierAccount, members: Sequence[str]) -> tuple[int | str, ...]:
        microseconds = max(1, round(1_000_000 / account.qps))
        burst = max(1, math.floor(account.qps * _BURST_SECONDS))
        return (account.concurrency, microseconds, burst, self._wait_ms, self._lease_ms, *members)

    async def _flush_releases(self, slots: Sequence[Slot]) -> Sequence[Exception | None]:
        held: dict[int, list[Slot]] = defaultdict(list)
        for slot in slots:
            held[slot.account_id].append(slot)
        calls = [
            (
                (keys.account_slots(account_id),),
                [part for slot in group for part in (slot.member, slot.lease)],
            )
            for account_id, group in held.items()
        ]
        try:
            replies = await self._release.run_many(self._redis, calls)
        except FAULTS as error:
            return [error] * len(slots)
        failed = {
            account_id: reply
            for account_id, reply in zip(held, replies, strict=True)
            if isinstance(reply, Exception)
        }
        return [failed.get(slot.account_id) for slot in slots]
