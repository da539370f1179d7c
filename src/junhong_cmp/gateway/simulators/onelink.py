"""China Mobile OneLink, version 5, from the carrier's side, told from a card book."""

from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.drivers.onelink_wire import TOKEN_PATH
from junhong_cmp.gateway.simulator_cards import RUNNING, STOPPED
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators.dialect import PROXY_ERROR, Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.onelink_door import ChangeGaps, TokenDesk, TransIdBook
from junhong_cmp.gateway.simulators.onelink_questions import (
    MSISDN_PREFIX,
    PATHS,
    RefusedError,
    fields_of,
    question_of,
)
from junhong_cmp.gateway.simulators.onelink_usage import UsageBatch

UNLISTED: Final = "19999"
"""Stands for the codes that the carrier does not publish."""

_TARGETS: Final = {"stop": STOPPED, "resume": RUNNING}
_ALREADY: Final = {"stop": "12047", "resume": "12048"}
_CARD_STATUSES: Final = {"ready": "1", RUNNING: "2", STOPPED: "4", "testing": "6"}
_ICCID19: Final = 19


class OneLinkDialect:
    """A OneLink dialect answers whoever has a good token, a new transaction id and one number of a card."""

    def __init__(self, parts: SimulatorParts) -> None:
        self._book = parts.book
        self._appid = parts.credential.key_id
        self._desk = TokenDesk(parts.credential)
        self._transids = TransIdBook(parts.credential.key_id)
        self._gaps = ChangeGaps()
        self._batch = UsageBatch(parts.book)
        self._single: Mapping[str, Callable[[str, datetime], Mapping[str, object]]] = {
            "info": self._info,
            "usage": self._usage,
            "status": self._status,
            "realname": self._realname,
            "session": self._session,
        }

    def admit(self, request: Request, now: datetime) -> Question | Reply:
        """Return what is asked, or the refusal."""
        if request.path not in {TOKEN_PATH, *PATHS}:
            return Reply(HTTPStatus.NOT_FOUND, b"", outcome="bad_request", content_type="text/plain")
        try:
            return self._let_in(request, now)
        except RefusedError as refused:
            return refused.reply

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``."""
        moment = now.replace(microsecond=now.microsecond // 1000 * 1000)
        try:
            return _ok(self._item(question, moment))
        except RefusedError as refused:
            return refused.reply

    def too_fast(self, retry_after_s: int) -> Reply:
        """Refuse as OneLink does, in words and without saying until when."""
        return RefusedError(UNLISTED, f"接口调用过于频繁，请 {retry_after_s} 秒后重试", "throttled").reply

    def fail(self, fault: Fault) -> Reply:
        """Fail in the carrier's own words, or as a proxy in between would."""
        if fault is Fault.PROXY_ERROR:
            return PROXY_ERROR
        return RefusedError("500", "系统内部错误", "transient").reply

    def _let_in(self, request: Request, now: datetime) -> Question:
        fields = fields_of(request)
        if not self._transids.enter(fields.get("transid", ""), now):
            raise RefusedError("12004", "transid 鉴权失败", "auth")
        if request.path == TOKEN_PATH:
            return Question("token", self._appid, fields=fields)
        if not self._desk.accepts(fields.get("token", ""), now):
            raise RefusedError("12021", "token 不存在或已过期", "token_expired")
        return question_of(request.path, fields, self._appid)

    def _item(self, question: Question, now: datetime) -> Mapping[str, object]:
        if question.op == "token":
            issued = self._desk.issue(question.fields, now)
            if issued is None:
                raise RefusedError("12022", "appid 或 password 鉴权不通过", "auth")
            return {"token": issued[0], "ttl": str(issued[1])}
        if "queryDate" in question.fields:
            item = self._batch.item(question.iccids, question.fields["queryDate"], now)
            if item is None:
                raise RefusedError("11000", "queryDate 不正确", "bad_request")
            return item
        iccid = question.iccids[0]
        if not self._book.knows(iccid):
            raise RefusedError("11011", "卡号不存在", "card_unknown")
        if question.op in _TARGETS:
            return self._change(question, now)
        return self._single[question.op](iccid, now)

    def _info(self, iccid: str, _: datetime) -> Mapping[str, object]:
        digits = iccid[:_ICCID19].removeprefix(MSISDN_PREFIX)
        numbered = len(digits) < _ICCID19 and digits.isdigit()
        return {"iccid": iccid, "msisdn": digits if numbered else " ", "imsi": " ", "activeDate": " "}

    def _usage(self, iccid: str, now: datetime) -> Mapping[str, object]:
        return {"dataAmount": str(self._book.usage_kb(iccid, now)), "apnUseAmountList": []}

    def _status(self, iccid: str, now: datetime) -> Mapping[str, object]:
        return {"cardStatus": _CARD_STATUSES[self._book.status(iccid, now)], "lastChangeDate": " "}

    def _realname(self, iccid: str, _: datetime) -> Mapping[str, object]:
        verified = self._book.real_name(iccid) == "verified"
        return {"realNameStatus": "1" if verified else "0"}

    def _session(self, iccid: str, now: datetime) -> Mapping[str, object]:
        session = self._book.session(iccid, now)
        fields = {"apnId": "CMIOT", "status": "00", "ip": " ", "createDate": " ", "rat": "6"}
        if session is not None:
            since = session.since.astimezone(CARRIER_TIME)
            fields |= {"status": "01", "ip": session.ip, "createDate": f"{since:%Y-%m-%d %H:%M:%S}"}
        return {"simSessionList": [fields]}

    def _change(self, question: Question, now: datetime) -> Mapping[str, object]:
        iccid, target = question.iccids[0], _TARGETS[question.op]
        status = self._book.status(iccid, now)
        if status == target:
            raise RefusedError(_ALREADY[question.op], "卡已处于目标状态", "already_done")
        if status not in _TARGETS.values():
            raise RefusedError("12089", "卡不是已激活或已停机，无法操作", "bad_request")
        if not self._gaps.is_open(iccid[:_ICCID19], now):
            raise RefusedError(UNLISTED, "同一卡号 3 分钟内不能重复办理业务", "too_soon")
        self._book.operate(iccid, target, question.request_id, now)
        self._gaps.note(iccid[:_ICCID19], now)
        return {"iccid": iccid, "orderNum": question.request_id}


def _ok(item: Mapping[str, object]) -> Reply:
    return Reply(HTTPStatus.OK, orjson.dumps({"status": "0", "message": "正确", "result": [item]}))
