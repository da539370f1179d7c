"""Leadership as the rest of the process sees it."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.keeper import LeaseKeeper
from junhong_cmp.leadership.keeper_thread import KeeperThread
from junhong_cmp.leadership.lease import LeaseRecord
from junhong_cmp.leadership.rival import Rival
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.leadership.times import LeaseTimes

_STOP_PATIENCE_S: Final = 0.8
"""What cannot be given up in this time lapses by itself; a stop has two seconds for everything."""


class LeaderState(StrEnum):
    """Where an elector stands."""

    STANDBY = "热备"
    LEADING = "主"
    RESIGNING = "卸任中"


class LeaderElector:
    """A leader elector contends for the lease in the background and hands out the terms it wins.

    ::

        term = await elector.next_term()
        ...              # guarded loops run until `term` ends
        elector.close_term()   # they have ended: the lease is released, and contended for again

    Between the end of a term and its closing the elector resigns: the lease is released only when nothing
    runs under it any more.
    """

    def __init__(
        self,
        candidate: Candidate,
        times: LeaseTimes,
        open_redis: Callable[[], RedisClient],
        *,
        must_lead: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._keeper = LeaseKeeper(candidate, times, self, must_lead=must_lead)
        self._thread = KeeperThread(self._keeper, open_redis, self._die)
        self._term: Term | None = None
        self._won: asyncio.Queue[Term | BaseException] = asyncio.Queue()
        self._answered = asyncio.Event()
        self._decided = asyncio.Event()
        self._started = False
        self.rival: LeaseRecord | None = None
        """Who leads, while it is somebody else, as of the last attempt."""

    @property
    def state(self) -> LeaderState:
        """Where this process stands now."""
        if self._term is None:
            return LeaderState.STANDBY
        return LeaderState.LEADING if self._term.end_reason is None else LeaderState.RESIGNING

    def start(self) -> None:
        """Begin to contend."""
        self._started = True
        self._thread.start()

    async def first_answer(self) -> LeaderState:
        """Return where this process stands after its first attempt, even a failed one."""
        await self._answered.wait()
        return self.state

    async def decision(self) -> LeaderState:
        """Return where this process stands once it was elected or has seen another leader renew its lease.

        A lease that a killed process left behind is waited out.
        """
        await self._decided.wait()
        return self.state

    async def next_term(self) -> Term:
        """Return the next term won.

        Raises:
            Exception: what the keeper died of; nobody will be elected here any more.

        """
        won = await self._won.get()
        if isinstance(won, BaseException):
            raise won
        return won

    def close_term(self) -> None:
        """Say that the loops of the present term have ended."""
        self._term = None
        self._thread.call(self._keeper.close_term)

    async def stop(self) -> None:
        """Contend no more, give up what is held, and end within a second."""
        if not self._started:
            return
        self._thread.call(self._keeper.stop)
        self.close_term()
        await self._thread.wait_ended(_STOP_PATIENCE_S)

    def elected(self, term: Term) -> None:
        """Take a term from the keeper's thread."""
        self._tell(lambda: self._take(term))

    def standing_by(self, rival: Rival) -> None:
        """Take from the keeper's thread who leads."""
        record, renews = rival.record, rival.renews
        self._tell(lambda: self._concede(record, renews=renews))

    def unanswered(self) -> None:
        """Take from the keeper's thread that Redis is away."""
        self._tell(self._answered.set)

    def _take(self, term: Term) -> None:
        self._term, self.rival = term, None
        self._won.put_nowait(term)
        self._answered.set()
        self._decided.set()

    def _concede(self, record: LeaseRecord | None, *, renews: bool) -> None:
        self.rival = record
        self._answered.set()
        if renews:
            self._decided.set()

    def _die(self, error: BaseException) -> None:
        if self._term is not None:
            self._term.end(TermEnd.LAPSED)
        self._won.put_nowait(error)
        self._answered.set()
        self._decided.set()

    def _tell(self, action: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(action)
