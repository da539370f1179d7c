"""The generic contract from the gateway's side, told from a card book."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.drivers import generic
from junhong_cmp.gateway.drivers.generic_batch import MAX_BATCH
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.signing import check_strength
from junhong_cmp.gateway.simulator_cards import RAW_STATUS, RUNNING, STOPPED
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators.dialect import PROXY_ERROR, Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.verifier import RequestVerifier, SignatureRejectedError

_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")


class MisunderstoodError(Exception):
    """The request is not one of the contract's; the text goes back to the caller."""


def refuse(status: HTTPStatus, code: str, message: str, *, retry_after_s: int | None = None) -> Reply:
    """Make a refusal in the contract's words."""
    body = orjson.dumps({"error": {"code": code, "message": message}})
    return Reply(status, body, outcome=code, retry_after_s=retry_after_s)


OPS: Final[Mapping[str, str]] = {
    generic.USAGE_PATH: "usage",
    generic.USAGE_BATCH_PATH: "usage",
    generic.STATUS_PATH: "status",
    generic.STATUS_BATCH_PATH: "status",
    generic.REALNAME_PATH: "realname",
    generic.REALNAME_BATCH_PATH: "realname",
    generic.SESSION_PATH: "session",
    generic.LIST_PATH: "list",
    generic.STOP_PATH: "stop",
    generic.RESUME_PATH: "resume",
    generic.OPERATION_PATH: "operation",
}
_BATCH_PATHS: Final = frozenset(
    {generic.USAGE_BATCH_PATH, generic.STATUS_BATCH_PATH, generic.REALNAME_BATCH_PATH}
)
_OPS_WITH_REQUEST_ID: Final = frozenset({"stop", "resume", "operation"})
_TARGETS: Final = {"stop": STOPPED, "resume": RUNNING}
_PAGE: Final = 500


def understand(path: str, body: bytes) -> Question:
    """Read a request.

    Raises:
        MisunderstoodError: with what is wrong about it.

    """
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MisunderstoodError("请求不是合法的 JSON") from error
    if not isinstance(fields, dict) or not isinstance(account := fields.get("account"), str) or not account:
        raise MisunderstoodError("请求缺少 account")
    op = OPS[path]
    if op == "list":
        return Question(op, account, fields={"cursor": _cursor(fields)})
    batch = path in _BATCH_PATHS
    request_id = _request_id(fields) if op in _OPS_WITH_REQUEST_ID else ""
    return Question(op, account, _iccids(fields, batch=batch), request_id, {"batch": "1"} if batch else {})


def _iccids(fields: Mapping[str, object], *, batch: bool) -> tuple[str, ...]:
    iccids = fields.get("iccids") if batch else [fields.get("iccid")]
    if not isinstance(iccids, list) or not 1 <= len(iccids) <= MAX_BATCH:
        raise MisunderstoodError(f"iccids 应为 1 至 {MAX_BATCH} 个卡号的列表")
    if not all(isinstance(iccid, str) and _ICCID.fullmatch(iccid) for iccid in iccids):
        raise MisunderstoodError("卡号缺失或格式错误")
    return tuple(iccids)


def _request_id(fields: Mapping[str, object]) -> str:
    request_id = fields.get("request_id")
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        raise MisunderstoodError("request_id 缺失或格式错误")
    return request_id


def _cursor(fields: Mapping[str, object]) -> str:
    cursor = fields.get("cursor", "")
    if not isinstance(cursor, str) or (cursor and not _ICCID.fullmatch(cursor)):
        raise MisunderstoodError("cursor 不是本网关给出的")
    return cursor


class GenericDialect:
    """A generic dialect answers requests of the generic contract that are signed, fresh and new."""

    def __init__(self, parts: SimulatorParts) -> None:
        check_strength(parts.credential)
        self._book = parts.book
        self._verifier = RequestVerifier({parts.credential.key_id: parts.credential})
        self._single: Mapping[str, Callable[[str, datetime], Mapping[str, object]]] = {
            "usage": self._usage,
            "status": self._status,
            "realname": self._realname,
            "session": self._session,
        }

    def admit(self, request: Request, now: datetime) -> Question | Reply:
        """Return what is asked, or the refusal."""
        if request.path not in OPS or request.method != "POST":
            return refuse(HTTPStatus.NOT_FOUND, "bad_request", "没有这个接口")
        try:
            self._verifier.verify(
                request.headers, path=request.path, body=request.body, now_s=now.timestamp()
            )
        except SignatureRejectedError as error:
            return refuse(HTTPStatus.UNAUTHORIZED, "auth", str(error))
        try:
            return understand(request.path, request.body)
        except MisunderstoodError as error:
            return refuse(HTTPStatus.BAD_REQUEST, "bad_request", str(error))

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``, shown to the millisecond, so that usage can be recomputed from it."""
        moment = now.replace(microsecond=now.microsecond // 1000 * 1000)
        if question.op == "list":
            return self._list(question, moment)
        if "batch" in question.fields:
            return _ok({"items": [self._item(question.op, iccid, moment) for iccid in question.iccids]})
        iccid = question.iccids[0]
        if not self._book.knows(iccid):
            return refuse(HTTPStatus.NOT_FOUND, "card_unknown", "没有这张卡")
        if target := _TARGETS.get(question.op):
            return self._operate(question, target, moment)
        if question.op == "operation":
            return self._operation(question, moment)
        return _ok(self._single[question.op](iccid, moment))

    def too_fast(self, retry_after_s: int) -> Reply:
        """Refuse with 429 and Retry-After."""
        return refuse(HTTPStatus.TOO_MANY_REQUESTS, "throttled", "调用过于频繁", retry_after_s=retry_after_s)

    def fail(self, fault: Fault) -> Reply:
        """Fail in the contract's own words, or as a proxy in between would."""
        if fault is Fault.PROXY_ERROR:
            return PROXY_ERROR
        return refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "transient", "系统繁忙")

    def _item(self, op: str, iccid: str, now: datetime) -> Mapping[str, object]:
        if not self._book.knows(iccid):
            return {"iccid": iccid, "error": {"code": "card_unknown", "message": "没有这张卡"}}
        return self._single[op](iccid, now)

    def _usage(self, iccid: str, now: datetime) -> Mapping[str, object]:
        used_kb = self._book.usage_kb(iccid, now)
        return {"iccid": iccid, "used": used_kb, "unit": "KB", "reading_at": _text(now)}

    def _status(self, iccid: str, now: datetime) -> Mapping[str, object]:
        status = self._book.status(iccid, now)
        fields = {"iccid": iccid, "status": status, "raw_status": RAW_STATUS[status]}
        return {**fields, "observed_at": _text(now)}

    def _realname(self, iccid: str, now: datetime) -> Mapping[str, object]:
        return {"iccid": iccid, "real_name": self._book.real_name(iccid), "observed_at": _text(now)}

    def _session(self, iccid: str, now: datetime) -> Mapping[str, object]:
        session = self._book.session(iccid, now)
        fields: dict[str, object] = {"iccid": iccid, "online": session is not None, "observed_at": _text(now)}
        if session is not None:
            fields |= {"ip": session.ip, "since": _text(session.since)}
        return fields

    def _list(self, question: Question, now: datetime) -> Reply:
        page = self._book.list_after(question.fields["cursor"], _PAGE)
        items = [{"iccid": iccid, "status": self._book.status(iccid, now)} for iccid in page]
        following = page[-1] if len(page) == _PAGE else None
        return _ok({"items": items, "next_cursor": following})

    def _operate(self, question: Question, target: str, now: datetime) -> Reply:
        operation = self._book.operate(question.iccids[0], target, question.request_id, now)
        if operation is None:
            return refuse(HTTPStatus.CONFLICT, "already_done", "卡已处于目标状态")
        if (operation.iccid, operation.target) != (question.iccids[0], target):
            return refuse(HTTPStatus.BAD_REQUEST, "bad_request", "request_id 已用于另一操作")
        return _operation_reply(question, operation.state(now), now)

    def _operation(self, question: Question, now: datetime) -> Reply:
        operation = self._book.operation(question.request_id)
        if operation is None or operation.iccid != question.iccids[0]:
            return _operation_reply(question, OperationState.UNKNOWN, now)
        return _operation_reply(question, operation.state(now), now)


def _operation_reply(question: Question, state: OperationState, now: datetime) -> Reply:
    fields = {"iccid": question.iccids[0], "request_id": question.request_id, "state": state.value}
    return _ok({**fields, "observed_at": _text(now)})


def _ok(fields: Mapping[str, object]) -> Reply:
    return Reply(HTTPStatus.OK, orjson.dumps(fields))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
