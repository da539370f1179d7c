"""Our cards against each carrier's own list of them."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.carrier_differences import (
    Difference,
    DifferenceKind,
    compare_card,
    list_our_cards,
    record_differences,
    resolve_differences,
)
from junhong_cmp.cards.iccid import IccidError, normalise
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import find_by_iccids
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.gateway.card_list import CardPage
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.gateway.errors import AccountPausing, GatewayError, NotOffered
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.faults import AWAY_DELAY
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_PAGE: Final = 1000
_MOST_PAGES: Final = 20_000
_BUSY_S: Final = 1.0
_MOST_REFUSALS: Final = 120
_LIST_MEMBER: Final = 0
"""The in-flight slot of a list call is that of a card nobody has: one list at a time an account."""


@dataclass(slots=True)
class _Pass:
    """One reading of an account's list: since when, which of our cards were on it, and what was counted."""

    started: datetime
    listed: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)


class _Unfinished(Exception):  # noqa: N818 - a way out, not a fault
    """The carrier's list could not be read to its end: nothing may be concluded from what is missing."""


@dataclass(slots=True, kw_only=True)
class OrphanDiffHandler(PeriodicHandler):
    """An orphan diff handler records where the lists differ, and changes no card.

    Cards missing from a carrier's list are told only when the list was read to its end. An account that
    rests, or whose carrier has no list, is left out and said to be.
    """

    task_type = TaskType.ORPHAN_DIFF

    pool: Pool
    gateway: GatewayClient | None
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    pauses: AccountPauses
    clock: Clock = field(default_factory=SystemClock)
    page: int = _PAGE

    async def run(self, draining: asyncio.Event) -> None:
        """Compare account by account, all accounts at once: each is as fast as its own limits."""
        if self.gateway is None:
            raise PutBack(AWAY_DELAY, "网关未配置，无法与运营商清单比对")
        gateway = self.gateway
        accounts = [
            account
            for account in self.config_manager.snapshot.accounts.values()
            if account.polling_enabled and self.pauses.remaining(account) is None
        ]
        ends = await asyncio.gather(
            *(self._compare(gateway, account, draining) for account in accounts),
            return_exceptions=True,  # what fails for one account keeps no other from its turn
        )
        for end in ends:
            if end is not None:
                raise end

    async def _compare(
        self, gateway: GatewayClient, account: CarrierAccount, draining: asyncio.Event
    ) -> None:
        looked = _Pass(self.clock.now())
        try:
            await self._read_list(gateway, account, looked, draining)
            await self._tell_missing(account, looked)
        except NotOffered:
            log.info("运营商不提供卡清单，跳过比对", account=account.code)
            return
        except AccountPausing as error:
            await self.pauses.pause(account, error)
            log.warning("运营商卡清单比对未完成", account=account.code, reason=error.reason)
            return
        except (GatewayError, _Unfinished) as error:
            log.warning("运营商卡清单比对未完成", account=account.code, error=str(error))
            return
        resolved = await resolve_differences(self.pool, account.id, looked.started)
        counts = looked.counts
        log.info(
            "运营商卡清单比对完成",
            account=account.code,
            listed=counts["listed"],
            only_at_carrier=counts[DifferenceKind.ONLY_AT_CARRIER],
            only_here=counts[DifferenceKind.ONLY_HERE],
            status_differs=counts[DifferenceKind.STATUS_DIFFERS],
            unreadable=counts["unreadable"],
            resolved=resolved,
        )

    async def _read_list(
        self, gateway: GatewayClient, account: CarrierAccount, looked: _Pass, draining: asyncio.Event
    ) -> None:
        """Compare the carrier's list with ours, page by page, to its end."""
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            if draining.is_set():
                break
            page = await self._ask(gateway, account, cursor)
            await self._compare_page(account, page, looked)
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise _Unfinished("运营商的分页游标重复")
            seen.add(cursor)
        raise _Unfinished("清单没有读到末页")

    async def _ask(self, gateway: GatewayClient, account: CarrierAccount, cursor: str | None) -> CardPage:
        for _ in range(_MOST_REFUSALS):
            slot = await self.concurrency.acquire(account, self.task_type, _LIST_MEMBER)
            if not isinstance(slot, Refusal):
                try:
                    await asyncio.sleep(slot.wait_s)
                    return await gateway.list_cards(gateway_account(account), cursor)
                finally:
                    await self.concurrency.release(slot)
            await asyncio.sleep(_BUSY_S)
        raise _Unfinished("账号并发或速率已满")

    async def _compare_page(self, account: CarrierAccount, page: CardPage, looked: _Pass) -> None:
        now = self.clock.now()
        numbers: dict[str, tuple[str | None, str]] = {}
        for card in page.cards:
            try:
                numbers[normalise(card.iccid).value] = (card.raw_status, card.status)
            except IccidError:
                looked.counts["unreadable"] += 1

        async def compare(conn: Conn) -> tuple[set[int], list[Difference]]:
            ours = await find_by_iccids(conn, numbers.keys())
            mine = {number: card for number, card in ours.items() if card.account_id == account.id}
            compared = [
                compare_card(number, raw, status, mine.get(number), looked.started)
                for number, (raw, status) in numbers.items()
            ]
            found = [difference for difference in compared if difference is not None]
            await record_differences(conn, account.id, found, now)
            return {card.id for card in mine.values()}, found

        ids, found = await in_transaction(self.pool, compare)
        looked.listed |= ids
        looked.counts["listed"] += len(page.cards)
        looked.counts.update(difference.kind for difference in found)

    async def _tell_missing(self, account: CarrierAccount, looked: _Pass) -> None:
        now, after_id = self.clock.now(), 0
        while ours := await list_our_cards(self.pool, account.id, after_id, looked.started, self.page):
            missing = [
                Difference(kind=DifferenceKind.ONLY_HERE, iccid=iccid, card_id=card_id, our_status=status)
                for card_id, iccid, status in ours
                if card_id not in looked.listed
            ]

            async def record(conn: Conn, missing: list[Difference] = missing) -> None:
                await record_differences(conn, account.id, missing, now)

            await in_transaction(self.pool, record)
            looked.counts[DifferenceKind.ONLY_HERE] += len(missing)
            after_id = ours[-1][0]
