"""One request to the simulated carrier, from its bytes to its reply, its fault and its line in the log."""

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from junhong_cmp.gateway.simulator_faults import FaultPlan, Throttle
from junhong_cmp.gateway.simulator_log import CallRecord, RequestLog
from junhong_cmp.gateway.simulator_stats import SimulatorStats
from junhong_cmp.gateway.simulators.dialect import Dialect, Question, Reply, Request

_ABORTED: Final = "aborted"


@dataclass(frozen=True, slots=True)
class CarrierService:
    """A carrier service admits a request, delays it, fails or answers it, and writes down that it did."""

    dialect: Dialect
    faults: FaultPlan
    throttle: Throttle
    log: RequestLog
    stats: SimulatorStats

    async def respond(self, request: Request) -> Reply:
        """Reply to a request; what was refused at the door counts, but has no cards to be logged for."""
        started_s = self.log.now_s()
        admitted = self.dialect.admit(request, datetime.now(UTC))
        if isinstance(admitted, Reply):
            self.stats.begin("refused", ())
            self.stats.end("refused", (), admitted.outcome)
            return admitted
        op, iccids = admitted.op, admitted.iccids
        self.stats.begin(op, iccids)
        outcome = _ABORTED
        try:
            reply = await self._reply(admitted)
            outcome = reply.outcome
        finally:
            self.stats.end(op, iccids, outcome)
            ended_s = self.log.now_s()
            for iccid in iccids:
                self.log.add(CallRecord(started_s, ended_s, op, iccid, admitted.account, outcome))
        return reply

    async def _reply(self, question: Question) -> Reply:
        if wait_s := self.throttle.wait_s(question.account, time.monotonic()):
            return self.dialect.too_fast(math.ceil(wait_s))
        if delay_s := self.faults.delay_s():
            await asyncio.sleep(delay_s)
        if fault := self.faults.draw():
            return self.dialect.fail(fault)
        return self.dialect.answer(question, datetime.now(UTC))
