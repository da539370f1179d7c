"""China Unicom's platform from its own side: the details of terminals, and changes of their state.

It signs, numbers and limits as the platform does. The codes of refusals are this simulator's own, since the
platform publishes none but that of success; what they mean is in their words.
"""

import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.client import GatewayCall
from junhong_cmp.gateway.drivers.unicom import DETAILS_PATH, EDIT_PATH, MAX_BATCH, STATUS_CHANGE
from junhong_cmp.gateway.drivers.unicom_codes import ACTIVATED, DEACTIVATED, OK
from junhong_cmp.gateway.drivers.unicom_signing import CARRIER_TIME, UnicomAccess, access_of, token_of
from junhong_cmp.gateway.simulator_cards import RUNNING, STOPPED
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators.dialect import PROXY_ERROR, Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.unicom_door import SerialGuard

BILLING_DAY: Final = 27

_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")
_MESSAGE_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_SIM_STATUS: Final = {"testing": "0", "ready": "1", RUNNING: ACTIVATED, STOPPED: DEACTIVATED}
_REALNAME: Final = {"not_required": "0", "unverified": "1", "verified": "2"}
_TARGETS: Final = {ACTIVATED: RUNNING, DEACTIVATED: STOPPED}
_OPS: Final = {ACTIVATED: "resume", DEACTIVATED: "stop"}
_QUERIES: Final = frozenset(call.value for call in GatewayCall)
_MILLI: Final = 1000


def volume_of(used_kb: int) -> str:
    """Return a volume as the platform writes it: in MB without a unit, cut to three places."""
    thousandths = used_kb * _MILLI // 1024
    return f"{thousandths // _MILLI}.{thousandths % _MILLI:03d}"


class _RefusedError(Exception):
    """The request is not accepted: the word for the log, the code and the text."""

    def __init__(self, outcome: str, code: str, text: str) -> None:
        self.reply = _refuse(outcome, code, text)
        super().__init__(text)


class UnicomDialect:
    """A Unicom dialect answers signed questions about at most fifty cards, and changes one at a time."""

    def __init__(self, parts: SimulatorParts) -> None:
        self._book = parts.book
        self._access: UnicomAccess = access_of(parts.credential)
        self._serials = SerialGuard()

    def admit(self, request: Request, now: datetime) -> Question | Reply:
        """Return what is asked, or the refusal."""
        if request.path not in {DETAILS_PATH, EDIT_PATH} or request.method != "POST":
            return Reply(HTTPStatus.NOT_FOUND, b"", outcome="bad_request", content_type="text/plain")
        try:
            data = self._believe(request.body, now)
            read = _details if request.path == DETAILS_PATH else _change
            return read(self._access.app_id, data)
        except _RefusedError as refused:
            return refused.reply

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``."""
        if question.op in _OPS.values():
            return self._operate(question, now)
        known = [iccid for iccid in question.iccids if self._book.knows(iccid)]
        terminals = [self._terminal(iccid, now) for iccid in known]
        return _ok(question.request_id, now, {"terminals": terminals})

    def too_fast(self, retry_after_s: int) -> Reply:
        """Refuse in words; the platform does not say for how long."""
        del retry_after_s
        return _refuse("throttled", "9429", "调用频率超限")

    def fail(self, fault: Fault) -> Reply:
        """Fail in the platform's own form, or as a proxy in between would."""
        return PROXY_ERROR if fault is Fault.PROXY_ERROR else _refuse("transient", "9999", "系统异常")

    def _believe(self, body: bytes, now: datetime) -> Mapping[str, object]:
        """Return the data of a body that the one customer there is has signed, now, for the first time."""
        fields = _object(_parsed(body))
        timestamp, trans_id = _text(fields, "timestamp"), _text(fields, "trans_id")
        if fields.get("app_id") != self._access.app_id:
            raise _RefusedError("auth", "9401", "app_id 无效")
        expected = token_of(self._access, timestamp, trans_id)
        if not hmac.compare_digest(expected.encode(), _text(fields, "token").encode()):
            raise _RefusedError("auth", "9402", "token 校验失败")
        problem = self._serials.problem_of(timestamp, trans_id, now)
        if problem is not None:
            raise _RefusedError("auth", "9403", problem)
        data = _object(fields.get("data"))
        if data.get("openId") != self._access.open_id:
            raise _RefusedError("auth", "9404", "openId 无效")
        if not _MESSAGE_ID.fullmatch(_text(data, "messageId")) or data.get("version") != "1.0":
            raise _RefusedError("bad_request", "9405", "参数 messageId 或 version 错误")
        return data

    def _terminal(self, iccid: str, now: datetime) -> dict[str, object]:
        used_kb = self._book.usage_kb(iccid, now, billing_day=BILLING_DAY)
        return {
            "iccid": iccid,
            "simStatus": _SIM_STATUS[self._book.status(iccid, now)],
            "realNameStatus": _REALNAME[self._book.real_name(iccid)],
            "monthToDateDataUsage": volume_of(used_kb),
            "monthToDateVoiceUsage": "0",
            "monthToDateSMSUsage": "0",
        }

    def _operate(self, question: Question, now: datetime) -> Reply:
        iccid, target = question.iccids[0], question.fields["target"]
        if not self._book.knows(iccid):
            return _refuse("card_unknown", "9501", "ICCID 不存在")
        if self._book.operate(iccid, target, question.request_id, now) is None:
            return _refuse("already_done", "9502", "卡状态相同")
        local = (now + timedelta(seconds=1)).astimezone(CARRIER_TIME)
        changed = {"iccid": iccid, "effectiveDate": f"{local:%Y-%m-%d %H:%M:%S}"}
        return _ok(question.request_id, now, changed)


def _details(account: str, data: Mapping[str, object]) -> Question:
    iccids = data.get("iccids")
    if not isinstance(iccids, list) or not 1 <= len(iccids) <= MAX_BATCH:
        raise _RefusedError("bad_request", "9406", f"参数 iccids 应为 1 至 {MAX_BATCH} 个")
    if not all(isinstance(iccid, str) and _ICCID.fullmatch(iccid) for iccid in iccids):
        raise _RefusedError("bad_request", "9407", "参数 iccids 格式错误")
    message_id = _text(data, "messageId")
    wanted = message_id.partition("-")[0]  # details answer every query: only the caller knows which it has
    op = wanted if wanted in _QUERIES else GatewayCall.USAGE.value
    return Question(op, account, tuple(iccids), message_id)


def _change(account: str, data: Mapping[str, object]) -> Question:
    iccid, target = _text(data, "iccid"), _text(data, "targetValue")
    if not _ICCID.fullmatch(iccid):
        raise _RefusedError("bad_request", "9407", "参数 iccid 格式错误")
    if data.get("changeType") != STATUS_CHANGE or data.get("asynchronous") != "0" or target not in _TARGETS:
        raise _RefusedError("bad_request", "9408", "不支持的变更参数")
    return Question(_OPS[target], account, (iccid,), _text(data, "messageId"), {"target": _TARGETS[target]})


def _ok(message_id: str, now: datetime, fields: Mapping[str, object]) -> Reply:
    timestamp = f"{now.astimezone(CARRIER_TIME):%Y-%m-%d %H:%M:%S}"
    head = {"messageId": message_id, "version": "1.0", "resultCode": OK, "timestamp": timestamp}
    return Reply(HTTPStatus.OK, orjson.dumps({"status": OK, "message": "成功", "data": {**head, **fields}}))


def _refuse(outcome: str, code: str, text: str) -> Reply:
    return Reply(HTTPStatus.OK, orjson.dumps({"status": code, "message": text}), outcome=outcome)


def _parsed(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _RefusedError("bad_request", "9400", "请求格式不是 JSON") from error


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _RefusedError("bad_request", "9400", "请求格式错误")
    return value


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise _RefusedError("bad_request", "9409", f"参数 {name} 缺失")
    return value
