"""How many calls of an account may be in flight, how fast they may follow, how many in all; no card twice."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, Final, NamedTuple

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.polling import keys
from junhong_cmp.polling.account_load import AccountLoads
from junhong_cmp.polling.budgets import BudgetBook, Budgets
from junhong_cmp.polling.due import milliseconds
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.tasks import TaskType

_PACKAGE: Final = __package__ or ""
_BURST_SECONDS: Final = 0.1
_CALL_MARGIN: Final = timedelta(seconds=1)
"""So long after its token a call may still be refused by the rate of that time."""
MOST_SLOTS: Final = 250
"""Slots one script takes or releases, so that it does not hold Redis for long."""


class Slot(NamedTuple):
    """An in-flight slot, held until ``lease`` (unix ms) at the latest; call after ``wait_s`` seconds."""

    account_id: int
    member: str
    lease: int
    wait_s: float


class Refusal(Enum):
    """Why a poll was not admitted."""

    SATURATED = -1
    IN_FLIGHT = -2
    DAY_BUDGET = -3
    MONTH_BUDGET = -4


_Admission = Slot | Refusal


class _Call(NamedTuple):
    """A call somebody wants to make: the slots it needs, one for each of its cards."""

    account: CarrierAccount
    members: Sequence[str]


class AccountConcurrency:
    """An account concurrency admits calls: a token and budget for each, a slot for each of their cards.

    Slots are leases named after the card, so those of a crashed process run out by themselves.
    Tokens are taken in blocks: all calls that gathered go to Redis in one script an account,
    and each is told how long to wait for its own.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        slot_lease: timedelta = timedelta(seconds=75),
        rate_wait: timedelta = timedelta(seconds=2),
        budgets: BudgetBook | None = None,
    ) -> None:
        self._redis = redis
        self._lease_ms = milliseconds(slot_lease)
        self._wait_ms = milliseconds(rate_wait)
        self._rare = RareLog()
        self._budgets = BudgetBook() if budgets is None else budgets
        self.loads = AccountLoads(redis, once_within=rate_wait + _CALL_MARGIN)
        self._admit = LuaScript.load(_PACKAGE, "granted", "admit")
        self._release = LuaScript.load(_PACKAGE, "release")
        self._admissions: MicroBatcher[_Call, list[_Admission]] = MicroBatcher(
            self._flush_admissions, name="polling_admit"
        )
        self._releases: MicroBatcher[Sequence[Slot], None] = MicroBatcher(
            self._flush_releases, name="polling_release"
        )

    async def close(self) -> None:
        """Finish the batches under way."""
        await self._admissions.close()
        await self._releases.close()

    async def acquire(self, account: CarrierAccount, task_type: TaskType, card_id: int) -> Slot | Refusal:
        """Take a slot, a token and budget for a call about one card; a refused one holds nothing."""
        (admission,) = await self.acquire_batch(account, task_type, (card_id,))
        return admission

    async def acquire_batch(
        self, account: CarrierAccount, task_type: TaskType, card_ids: Sequence[int]
    ) -> Sequence[Slot | Refusal]:
        """Take a slot for each card of one call, and one token for all; cards are refused one by one."""
        kind = task_type.kind
        return await self._admissions.submit(_Call(account, [f"{kind}:{card_id}" for card_id in card_ids]))

    async def release(self, slot: Slot) -> None:
        """Give the slot back; one whose lease ran out is left to its next holder."""
        await self._releases.submit((slot,))

    def release_soon(self, slots: Sequence[Slot]) -> None:
        """Give the slots of one call back without waiting for it; if it fails, their leases run out."""
        if slots:
            self._releases.submit_soon(slots).add_done_callback(self._report)

    def _report(self, released: asyncio.Future[None]) -> None:
        error = None if released.cancelled() else released.exception()
        if error is not None:
            self._rare.warning("在途名额未能归还，等待其到期", error=type(error).__name__)

    def budget_rest(self, account: CarrierAccount, refusal: Refusal) -> timedelta | None:
        """Return when a budget that refused a call is renewed; None for what is no matter of a budget."""
        budgets = self._budgets.of(account)
        if budgets is None or refusal not in {Refusal.DAY_BUDGET, Refusal.MONTH_BUDGET}:
            return None
        return self._budgets.rest(budgets.day if refusal is Refusal.DAY_BUDGET else budgets.month)

    async def _flush_admissions(self, calls: Sequence[_Call]) -> Sequence[list[_Admission] | Exception]:
        groups = _by_account(calls)
        try:
            replies = await self._ask(groups)
            stale = [
                index
                for index, reply in enumerate(replies)
                if not isinstance(reply, Exception) and not reply[0]
            ]
            for index in stale:  # a day or a month has ended: ask again with the one that began
                self._budgets.correct(groups[index][0].account.id, int(replies[index][1]))
            again = await self._ask([groups[index] for index in stale])
        except FAULTS as error:  # told to each caller: raising would have the batch halved and tried again
            return [error] * len(calls)
        for index, reply in zip(stale, again, strict=True):
            replies[index] = reply
        outcomes = {
            id(call): outcome
            for group, reply in zip(groups, replies, strict=True)
            for call, outcome in zip(group, self._read(group, reply), strict=True)
        }
        return [outcomes[id(call)] for call in calls]

    async def _ask(self, groups: Sequence[Sequence[_Call]]) -> list[Any]:
        """Run the script once a group, all in one round trip."""
        if not groups:
            return []
        scripts = [self._admission(group[0].account, group) for group in groups]
        return await self._admit.run_many(self._redis, scripts)

    def _admission(
        self, account: CarrierAccount, calls: Sequence[_Call]
    ) -> tuple[list[str], list[int | float | str]]:
        used = [
            keys.account_slots(account.id),
            keys.account_riders(account.id),
            keys.account_rate(account.id),
            keys.account_granted(account.id),
        ]
        args: list[int | float | str] = [
            account.concurrency, account.qps, _BURST_SECONDS, self._wait_ms, self._lease_ms, account.quota_per
        ]  # fmt: skip
        budgets = self._budgets.of(account)
        if budgets is not None:
            _add_budgets(account.id, budgets, used, args)
        for call in calls:
            args.append(len(call.members))
            args += call.members
        return used, args

    def _read(self, calls: Sequence[_Call], reply: Any) -> list[list[_Admission] | Exception]:
        if isinstance(reply, Exception):
            return [reply] * len(calls)
        if not reply[0]:  # twice within one instant: whatever the clocks do, nobody is admitted by them
            return [[Refusal.SATURATED] * len(call.members) for call in calls]
        lease, place = int(reply[0]), 1
        self._budgets.note(lease - self._lease_ms)
        admissions: list[list[_Admission] | Exception] = []
        for call in calls:
            figures = reply[place : place + len(call.members)]
            place += len(call.members)
            admissions.append(
                [
                    Refusal(figure) if figure < 0 else Slot(call.account.id, member, lease, figure / 1000)
                    for member, figure in zip(call.members, figures, strict=True)
                ]
            )
        return admissions

    async def _flush_releases(self, groups: Sequence[Sequence[Slot]]) -> Sequence[Exception | None]:
        held: dict[int, list[int | str]] = defaultdict(list)
        for slots in groups:
            for slot in slots:
                held[slot.account_id] += (slot.member, slot.lease)
        calls = [
            (
                (keys.account_slots(account_id), keys.account_riders(account_id)),
                parts[start : start + 2 * MOST_SLOTS],
            )
            for account_id, parts in held.items()
            for start in range(0, len(parts), 2 * MOST_SLOTS)
        ]
        try:
            replies = await self._release.run_many(self._redis, calls)
        except FAULTS as error:
            return [error] * len(groups)
        failed = {
            call[0][0]: reply
            for call, reply in zip(calls, replies, strict=True)
            if isinstance(reply, Exception)
        }
        return [failed.get(keys.account_slots(slots[0].account_id)) for slots in groups]


def _by_account(calls: Sequence[_Call]) -> list[list[_Call]]:
    """Gather the calls by account, no more in a group than one script may take without holding Redis long."""
    groups: list[list[_Call]] = []
    latest: dict[int, tuple[list[_Call], int]] = {}
    for call in calls:
        group, slots = latest.get(call.account.id, (None, 0))
        if group is None or slots + len(call.members) > MOST_SLOTS:
            group, slots = [], 0
            groups.append(group)
        group.append(call)
        latest[call.account.id] = (group, slots + len(call.members))
    return groups


def _add_budgets(account_id: int, budgets: Budgets, used: list[str], args: list[int | float | str]) -> None:
    for budget in (budgets.day, budgets.month):
        used.append(keys.account_budget(account_id, budget.name))
        args += ("" if budget.limit is None else budget.limit, budget.start_ms, budget.end_ms)
