"""A carrier of a simulated day: an interface over HTTP, out of order by plan, that keeps its own log."""

import asyncio
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import pytest
from aiohttp import web
from tests.simulation.answers import read_usage
from tests.simulation.counters import CounterBook
from tests.simulation.plan import CHINA, AccountPlan, Failure, Habit, Plan
from tests.simulation.scaled_clock import TimeScale

from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators import onelink_door, unicom_door
from junhong_cmp.gateway.simulators.dialect import OK, Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.generic import GenericDialect
from junhong_cmp.gateway.simulators.table import SIMULATORS
from junhong_cmp.gateway.verifier import RequestVerifier

CREDENTIAL = Credential("simulated", "secret-of-a-simulated-day")

_LATENCY_S = 0.01
_SHUTDOWN_S = 3.0
_PATIENCE_S = 60.0
"""How many real seconds a signed request may be under way; the carriers allow 300 and more."""


@dataclass(frozen=True)
class Answer:
    """A line of the log: usage told of a card, the local day it counts for, and the truth about it."""

    iccid: str
    kb: int
    day: date
    cycle: date
    habit: Habit


@dataclass(frozen=True)
class Call:
    """A line of the log: a question about a card, from its arrival until nobody waits for its answer."""

    op: str
    iccid: str
    begin_s: float
    end_s: float
    at: datetime
    outcome: str


class DayCarrier:
    """A carrier answers for the cards of one account by simulated time."""

    def __init__(
        self, account: AccountPlan, habits: Mapping[str, Habit], plan: Plan, scale: TimeScale
    ) -> None:
        self.numbers = frozenset(habits)
        self.answers: list[Answer] = []
        self.calls: list[Call] = []
        self.refused: list[str] = []
        self._account = account
        self._plan = plan
        self._scale = scale
        self._book = CounterBook(plan, habits)
        self._dialect = SIMULATORS[account.driver](SimulatorParts(self._book, CREDENTIAL))
        self._faults = itertools.cycle(Fault)
        self._runner: web.ServerRunner | None = None
        if isinstance(self._dialect, GenericDialect):
            window = scale.simulated(timedelta(seconds=_PATIENCE_S))
            self._dialect._verifier = RequestVerifier({CREDENTIAL.key_id: CREDENTIAL}, window=window)

    @property
    def url(self) -> str:
        assert self._runner is not None, "not started"
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None), shutdown_timeout=_SHUTDOWN_S
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        begin_s = time.monotonic()
        asked = Request(request.method, request.path, request.query, request.headers, await request.read())
        admitted = self._dialect.admit(asked, self._scale.now())
        if isinstance(admitted, Reply):
            self.refused.append(f"{self._account.code} {admitted.outcome} {admitted.body.decode()}")
            return _response(admitted)
        reply, at = await self._reply(admitted)
        end_s = min(time.monotonic(), begin_s + self._plan.call_limit.total_seconds())
        self.calls += [
            Call(admitted.op, iccid, begin_s, end_s, at, reply.outcome) for iccid in admitted.iccids
        ]
        return _response(reply)

    async def _reply(self, question: Question) -> tuple[Reply, datetime]:
        """Answer, or fail, as of one instant; from then on nothing is waited for."""
        await asyncio.sleep(_LATENCY_S)
        at = self._scale.now()
        failure = self._plan.failure(self._account.code, at)
        if failure is Failure.BUSY:
            return self._dialect.too_fast(1), at
        if failure is Failure.HANG:
            await asyncio.sleep(self._plan.call_limit.total_seconds())
        if failure is not None:
            return self._dialect.fail(next(self._faults)), at
        reply = self._dialect.answer(question, at)
        if question.op == "usage" and reply.outcome == OK:
            self._write_down(question, reply, at)
        return reply, at

    def _write_down(self, question: Question, reply: Reply, at: datetime) -> None:
        for iccid, kb, told_at in read_usage(self._account.driver, question.iccids, reply.body):
            moment = told_at or at
            shown = self._book.shown(iccid, moment, self._account.billing_day)
            day = moment.astimezone(CHINA).date()
            self.answers.append(Answer(iccid, kb, day, shown.cycle, shown.habit))


def widen_doors(monkeypatch: pytest.MonkeyPatch, scale: TimeScale) -> None:
    """Let signatures and tokens live by simulated time what they live by real time: networks do not scale."""
    patience = scale.simulated(timedelta(seconds=_PATIENCE_S))
    monkeypatch.setattr(unicom_door, "WINDOW", patience)
    monkeypatch.setattr(onelink_door, "_SKEW", patience)
    monkeypatch.setattr(onelink_door, "TOKEN_LIFETIME", patience)


def _response(reply: Reply) -> web.Response:
    response = web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)
    if reply.retry_after_s is not None:
        response.headers["Retry-After"] = str(reply.retry_after_s)
    return response
