"""Contending for the lease, and keeping it."""

import asyncio
import random
import time
from typing import Final, Protocol

import structlog

from junhong_cmp.asynq.outages import FAULTS, OutageLog
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.lease import UNNAMED, Elected, LeaseRecord
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.leadership.rival import Rival
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.leadership.times import LeaseTimes

log = structlog.stdlib.get_logger(__name__)

_SPREAD_S: Final = 0.05
"""Candidates that wait for one lease to lapse do not all ask in the same millisecond."""


class ElectionWatcher(Protocol):
    """Who is told how the election goes, in the thread the keeper runs in."""

    def elected(self, term: Term) -> None:
        """This process leads from now on."""
        ...

    def standing_by(self, rival: Rival) -> None:
        """Somebody else leads."""
        ...

    def unanswered(self) -> None:
        """An attempt failed: Redis is away."""
        ...


class LeaseKeeper:
    """A lease keeper contends until it is elected, renews until the term ends, and contends again.

    It never contends while loops of an ended term still run: it waits for :meth:`close_term` first. A failed
    attempt always concedes: without an answer nobody is elected. All methods belong to the keeper's own loop.
    ``must_lead`` is for what its log says: until it is elected, the process ends where somebody else leads.
    """

    def __init__(
        self,
        candidate: Candidate,
        times: LeaseTimes,
        watcher: ElectionWatcher,
        *,
        must_lead: bool = False,
    ) -> None:
        self._candidate = candidate
        self._must_lead = must_lead
        self._times = times
        self._watcher = watcher
        self._rival = Rival(times)
        self._floor = 0  # the highest epoch seen: Redis may forget it, and set its clock back too
        self._outage = OutageLog("竞选主节点")
        self._closed = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self, store: LeaseStore) -> None:
        """Contend and lead until stopped; what is held then is given up."""
        while not self._stopping.is_set():
            term = await self._contend(store)
            if term is not None and self._stopping.is_set():
                await self._release(store, term)  # won while being told to stop
            elif term is not None:
                await self._lead(store, term)
        await self._tidy(store)

    def close_term(self) -> None:
        """The loops of the present term have ended: give up what is still ours."""
        self._closed.set()

    def stop(self) -> None:
        """Contend no more; the present term goes on until it is closed."""
        self._stopping.set()

    async def _contend(self, store: LeaseStore) -> Term | None:
        """Return the term won, or None when stopped."""
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._times.attempt.total_seconds()):
                    answer = await store.acquire(
                        self._candidate, self._times, observed=self._rival.expired_state, floor=self._floor
                    )
            except FAULTS as error:
                self._outage.failed(error)
                self._watcher.unanswered()
                await self._rest(self._times.next_retry())
                continue
            self._outage.worked()
            if isinstance(answer, LeaseRecord):
                await self._rest(self._stand_by(answer))
                continue
            term = self._term(answer, began)
            if term.trusted:  # else this process was frozen since it asked
                return term
        return None

    def _term(self, won: Elected, began: float) -> Term:
        trusted_until = began + self._times.trust.total_seconds()
        return Term(won.epoch, trusted_until=trusted_until, gap=won.gap)

    def _stand_by(self, record: LeaseRecord) -> float:
        """Note who leads; return the seconds until it is worth asking again."""
        was_alone = self._rival.record is None
        self._floor = max(self._floor, record.epoch)
        if self._rival.observe(record):
            tell = log.warning if was_alone else log.info
            tell(self._conceding(was_alone=was_alone), term=record.epoch, **record.described)
        self._watcher.standing_by(self._rival)
        lapse = self._rival.lapses_in() + random.uniform(0, _SPREAD_S)
        return min(self._times.next_retry(), lapse)

    def _conceding(self, *, was_alone: bool) -> str:
        if self._must_lead:
            return "已有主节点，待其续约即退出"
        return "已有主节点，本实例热备" if was_alone else "主节点已更换，本实例继续热备"

    async def _lead(self, store: LeaseStore, term: Term) -> None:
        self._must_lead = False
        self._rival.forget()
        self._closed.clear()
        began = time.monotonic()
        gap = {} if term.gap is None else {"gap_s": round(term.gap.total_seconds(), 3)}
        log.info("当选主节点", term=term.epoch, **gap, **self._own_fields)
        self._watcher.elected(term)
        await self._keep(store, term)
        await self._closed.wait()
        if term.end_reason is not TermEnd.LOST:
            await self._release(store, term)
        reason = term.end_reason or TermEnd.RESIGNED
        led_s = round(time.monotonic() - began, 3)
        log.info("卸任主节点", term=term.epoch, reason=reason.value, led_s=led_s, **self._own_fields)
        self._floor = max(self._floor, term.epoch, term.fence)
        if reason in {TermEnd.FENCED, TermEnd.DATA_LOST}:
            await self._rest(self._times.next_retry())  # were it disputed for ever, it would not be in haste

    async def _keep(self, store: LeaseStore, term: Term) -> None:
        """Renew until the term is closed, or the lease is lost."""
        pause = self._times.renew.total_seconds()
        while not await self._is_closed_within(min(pause, term.trusted_until - time.monotonic())):
            began = time.monotonic()
            if began >= term.trusted_until:
                self._lose(term, TermEnd.LAPSED)
                return
            limit = min(self._times.attempt.total_seconds(), term.trusted_until - began)
            try:
                async with asyncio.timeout(limit):
                    other = await store.renew(self._candidate.holder, term.epoch, self._times.ttl)
            except FAULTS as error:
                self._report_failure(term, error)
                pause = self._times.next_retry()
                continue
            if other is not None:
                self._lose(term, TermEnd.LOST, other)
                return
            if time.monotonic() < term.trusted_until:  # else it lapsed while we were frozen
                term.extend(began + self._times.trust.total_seconds())
            pause = began + self._times.renew.total_seconds() - time.monotonic()

    async def _is_closed_within(self, seconds: float) -> bool:
        return await _is_set_within(self._closed, seconds)

    async def _rest(self, seconds: float) -> None:
        await _is_set_within(self._stopping, seconds)

    def _report_failure(self, term: Term, error: Exception) -> None:
        log.warning(
            "租约续约失败",
            term=term.epoch,
            remaining_s=round(max(0.0, term.trusted_until - time.monotonic()), 2),
            reason=f"{type(error).__name__}：{error}",
        )

    def _lose(self, term: Term, reason: TermEnd, other: LeaseRecord | None = None) -> None:
        if term.end_reason is None:
            fields = other.described if other is not None and other.holder else {}
            log.error("失去主节点租约，停止调度", term=term.epoch, reason=reason.value, **fields)
        term.end(reason)

    async def _release(self, store: LeaseStore, term: Term) -> None:
        try:
            async with asyncio.timeout(self._times.attempt.total_seconds()):
                await store.release(self._candidate.holder, term.epoch)
        except FAULTS as error:
            log.warning("租约未能释放，将自行过期", term=term.epoch, error=type(error).__name__)

    async def _tidy(self, store: LeaseStore) -> None:
        try:
            async with asyncio.timeout(self._times.attempt.total_seconds()):
                await store.withdraw(self._candidate)
        except FAULTS as error:
            log.info("热备登记未能清除，将自行过期", error=type(error).__name__)

    @property
    def _own_fields(self) -> dict[str, object]:
        me = self._candidate
        return {
            "holder": me.holder,
            "holder_name": me.name or UNNAMED,
            "holder_host": me.host,
            "holder_pid": me.pid,
        }


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so long; tell whether it is set."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
