"""One request to the simulated carrier, from its bytes to its reply, its fault and its line in the log."""

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from junhong_cmp.gateway.simulator_api import (
    CarrierApi,
    MisunderstoodError,
    Question,
    Reply,
    refuse,
    understand,
)
from junhong_cmp.gateway.simulator_faults import Fault, FaultPlan, Throttle
from junhong_cmp.gateway.simulator_log import CallRecord, RequestLog
from junhong_cmp.gateway.simulator_stats import SimulatorStats
from junhong_cmp.gateway.verifier import RequestVerifier, SignatureRejectedError

_ABORTED: Final = "aborted"
_LOGGED_OP: Final = {"usage_batch": "usage"}
_FAULT_REPLIES: Final = {
    Fault.CARRIER_ERROR: refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "transient", "系统繁忙"),
    Fault.PROXY_ERROR: Reply(
        HTTPStatus.BAD_GATEWAY,
        b"<html><body><h1>502 Bad Gateway</h1></body></html>",
        outcome="transient",
        content_type="text/html",
    ),
}


@dataclass(frozen=True, slots=True)
class CarrierService:
    """A carrier service admits a request, delays it, fails or answers it, and writes down that it did."""

    api: CarrierApi
    verifier: RequestVerifier
    faults: FaultPlan
    throttle: Throttle
    log: RequestLog
    stats: SimulatorStats

    async def respond(self, op: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Reply to a request of the contract."""
        started_s = self.log.now_s()
        admitted = self._admit(op, path, headers, body)
        question = admitted if isinstance(admitted, Question) else Question(op, "", ("",), "")
        logged_op = _LOGGED_OP.get(op, op)
        self.stats.begin(logged_op, question.iccids)
        outcome = _ABORTED
        try:
            reply = admitted if isinstance(admitted, Reply) else await self._reply(question)
            outcome = reply.outcome
        finally:
            self.stats.end(logged_op, question.iccids, outcome)
            ended_s = self.log.now_s()
            for iccid in question.iccids:
                self.log.add(CallRecord(started_s, ended_s, logged_op, iccid, question.account, outcome))
        return reply

    def _admit(self, op: str, path: str, headers: Mapping[str, str], body: bytes) -> Question | Reply:
        try:
            self.verifier.verify(headers, path=path, body=body, now_s=time.time())
        except SignatureRejectedError as error:
            return refuse(HTTPStatus.UNAUTHORIZED, "auth", str(error))
        try:
            return understand(op, body)
        except MisunderstoodError as error:
            return refuse(HTTPStatus.BAD_REQUEST, "bad_request", str(error))

    async def _reply(self, question: Question) -> Reply:
        wait_s = self.throttle.wait_s(question.account, time.monotonic())
        if wait_s:
            retry_after_s = math.ceil(wait_s)
            return refuse(
                HTTPStatus.TOO_MANY_REQUESTS, "throttled", "调用过于频繁", retry_after_s=retry_after_s
            )
        if delay_s := self.faults.delay_s():
            await asyncio.sleep(delay_s)
        if fault := self.faults.draw():
            return _FAULT_REPLIES[fault]
        return self.api.answer(question, datetime.now(UTC))
