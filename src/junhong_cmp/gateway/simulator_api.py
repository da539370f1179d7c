"""What the simulated carrier answers: the generic contract, told from a card book."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.drivers import generic
from junhong_cmp.gateway.drivers.generic_batch import MAX_BATCH
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.simulator_cards import RAW_STATUS, RUNNING, STOPPED, CardBook

OK: Final = "ok"
JSON: Final = "application/json"

_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, and in ``outcome`` the word for it in the log: ok or the error code."""

    status: int
    body: bytes
    outcome: str = OK
    retry_after_s: int | None = None
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Question:
    """A request that was understood; ``op`` is its word in the log."""

    op: str
    account: str
    iccids: tuple[str, ...]
    request_id: str


class MisunderstoodError(Exception):
    """The request is not one of the contract's; the text goes back to the caller."""


def refuse(status: HTTPStatus, code: str, message: str, *, retry_after_s: int | None = None) -> Reply:
    """Make a refusal in the contract's words."""
    body = orjson.dumps({"error": {"code": code, "message": message}})
    return Reply(status, body, outcome=code, retry_after_s=retry_after_s)


OPS: Final[Mapping[str, str]] = {
    generic.USAGE_PATH: "usage",
    generic.USAGE_BATCH_PATH: "usage_batch",
    generic.STATUS_PATH: "status",
    generic.REALNAME_PATH: "realname",
    generic.STOP_PATH: "stop",
    generic.RESUME_PATH: "resume",
    generic.OPERATION_PATH: "operation",
}
_OPS_WITH_REQUEST_ID: Final = frozenset({"stop", "resume", "operation"})


def understand(op: str, body: bytes) -> Question:
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
    iccids = fields.get("iccids") if op == "usage_batch" else [fields.get("iccid")]
    if not isinstance(iccids, list) or not 1 <= len(iccids) <= MAX_BATCH:
        raise MisunderstoodError(f"iccids 应为 1 至 {MAX_BATCH} 个卡号的列表")
    if not all(isinstance(iccid, str) and _ICCID.fullmatch(iccid) for iccid in iccids):
        raise MisunderstoodError("卡号缺失或格式错误")
    request_id = fields.get("request_id", "")
    needed = op in _OPS_WITH_REQUEST_ID
    if needed and not (isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id)):
        raise MisunderstoodError("request_id 缺失或格式错误")
    return Question(op, account, tuple(iccids), request_id if needed else "")


class CarrierApi:
    """A carrier API answers questions about the cards of a book."""

    def __init__(self, book: CardBook) -> None:
        self._book = book
        self._answers: Mapping[str, Callable[[Question, datetime], Reply]] = {
            "usage": self._usage,
            "usage_batch": self._usage_batch,
            "status": self._status,
            "realname": self._realname,
            "stop": self._stop,
            "resume": self._resume,
            "operation": self._operation,
        }

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``, shown to the millisecond, so that usage can be recomputed from it."""
        if question.op != "usage_batch" and not self._book.knows(question.iccids[0]):
            return refuse(HTTPStatus.NOT_FOUND, "card_unknown", "没有这张卡")
        moment = now.replace(microsecond=now.microsecond // 1000 * 1000)
        return self._answers[question.op](question, moment)

    def _usage(self, question: Question, now: datetime) -> Reply:
        return _ok(self._usage_fields(question.iccids[0], now))

    def _usage_batch(self, question: Question, now: datetime) -> Reply:
        items = [
            self._usage_fields(iccid, now)
            if self._book.knows(iccid)
            else {"iccid": iccid, "error": {"code": "card_unknown", "message": "没有这张卡"}}
            for iccid in question.iccids
        ]
        return _ok({"items": items})

    def _usage_fields(self, iccid: str, now: datetime) -> dict[str, object]:
        used_kb = self._book.usage_kb(iccid, now)
        return {"iccid": iccid, "used": used_kb, "unit": "KB", "reading_at": _text(now)}

    def _status(self, question: Question, now: datetime) -> Reply:
        iccid = question.iccids[0]
        status = self._book.status(iccid, now)
        fields = {"iccid": iccid, "status": status, "raw_status": RAW_STATUS[status]}
        return _ok({**fields, "observed_at": _text(now)})

    def _realname(self, question: Question, now: datetime) -> Reply:
        iccid = question.iccids[0]
        return _ok({"iccid": iccid, "real_name": self._book.real_name(iccid), "observed_at": _text(now)})

    def _stop(self, question: Question, now: datetime) -> Reply:
        return self._operate(question, STOPPED, now)

    def _resume(self, question: Question, now: datetime) -> Reply:
        return self._operate(question, RUNNING, now)

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
