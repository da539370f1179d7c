"""China Telecom's platform from its own side: one address, a method a question, and three ways to write."""

import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

from junhong_cmp.gateway.drivers.ctcc import QUERY_PATH
from junhong_cmp.gateway.drivers.ctcc_signing import access_of, signed_query
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.simulator_cards import RUNNING, STOPPED, Operation
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators import ctcc_pages as pages
from junhong_cmp.gateway.simulators.ctcc_methods import METHODS, TARGETS, Method, access_number_of, problem_of
from junhong_cmp.gateway.simulators.ctcc_results import order_result, sentence
from junhong_cmp.gateway.simulators.dialect import PROXY_ERROR, Question, Reply, Request, SimulatorParts

T = TypeVar("T")

PAGE: Final = 50

_ICCID_CHARS: Final = 19
_REMEMBERED: Final = 100_000
_COMMON: Final = ("user_id", "passWord", "sign")


class CtccDialect:
    """A CTCC dialect answers signed questions about one card each; cards have numbers of its own making."""

    def __init__(self, parts: SimulatorParts) -> None:
        self._book = parts.book
        self._access = access_of(parts.credential)
        self._iccids: OrderedDict[str, str] = OrderedDict()
        self._orders: OrderedDict[str, Operation] = OrderedDict()
        self._answers: Mapping[str, Callable[[str, str, datetime], Reply]] = {
            "queryTraffic": self._usage,
            "queryCardMainStatus": self._status,
            "realNameQueryIot": self._realname,
            "getOnlineStatus": self._session,
            "getTelephone": self._telephone,
        }

    def admit(self, request: Request, now: datetime) -> Question | Reply:
        """Return what is asked, or the refusal."""
        del now  # this platform's signatures are as good tomorrow
        if request.path != QUERY_PATH or request.method != "GET":
            return Reply(HTTPStatus.NOT_FOUND, b"", outcome="bad_request", content_type="text/html")
        query = request.query
        method = METHODS.get(query.get("method", ""))
        if method is None or any(not query.get(name) for name in _COMMON):
            return sentence("bad_request", "-2", "缺少必需的参数")
        if not self._is_the_customer(query):
            return sentence("auth", "-1", "账号或口令有误")
        if problem := problem_of(method, query):
            return sentence(*problem)
        if not self._is_signed(query, method):
            return sentence("auth", "-3", "签名有误")
        return self._question(query, method)

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``."""
        if question.op == "list":
            return self._list(int(question.fields["page"]), now)
        iccid, asked = question.iccids[0], question.fields["asked"]
        if not self._book.knows(iccid):
            return sentence("card_unknown", "-4", "没有这个号码")
        if question.op in TARGETS:
            return self._operate(iccid, question.op, now)
        return self._answers[question.fields["method"]](iccid, asked, now)

    def too_fast(self, retry_after_s: int) -> Reply:
        """Refuse in a sentence; the platform does not say for how long."""
        del retry_after_s
        return sentence("throttled", "101004", "调用过于频繁")

    def fail(self, fault: Fault) -> Reply:
        """Fail as the system behind the platform does, or as a proxy in between would."""
        return PROXY_ERROR if fault is Fault.PROXY_ERROR else order_result("transient", "9001", "系统忙")

    def _is_the_customer(self, query: Mapping[str, str]) -> bool:
        same_user = hmac.compare_digest(query["user_id"].encode(), self._access.user_id.encode())
        password = self._access.written_password.encode()
        return hmac.compare_digest(query["passWord"].encode(), password) and same_user

    def _is_signed(self, query: Mapping[str, str], method: Method) -> bool:
        parameters = {name: value for name, value in query.items() if name in method.parameters}
        expected = signed_query(self._access, query["method"], parameters)["sign"]
        return hmac.compare_digest(query["sign"].encode(), expected.encode())

    def _question(self, query: Mapping[str, str], method: Method) -> Question | Reply:
        account = self._access.user_id
        if method.op == "list":
            return Question("list", account, fields={"page": query["pageIndex"]})
        number = query.get("access_number", "")
        iccid = query.get("iccid") or self._iccids.get(number)
        if iccid is None:
            return sentence("card_unknown", "-4", "没有这个号码")
        op = method.op or ("stop" if query["orderTypeId"] == TARGETS["stop"] else "resume")
        return Question(op, account, (iccid,), fields={"method": query["method"], "asked": number or iccid})

    def _usage(self, iccid: str, asked: str, now: datetime) -> Reply:
        return pages.usage(asked, self._book.usage_kb(iccid, now))

    def _status(self, iccid: str, asked: str, now: datetime) -> Reply:
        return pages.status(asked, self._book.status(iccid, now))

    def _realname(self, iccid: str, asked: str, now: datetime) -> Reply:
        del now
        return pages.realname(asked, registered=self._book.real_name(iccid) == "verified")

    def _session(self, iccid: str, asked: str, now: datetime) -> Reply:
        del asked
        return pages.session(self._number_of(iccid), self._book.session(iccid, now))

    def _telephone(self, iccid: str, asked: str, now: datetime) -> Reply:
        del asked, now
        return pages.telephone(self._number_of(iccid))

    def _list(self, page: int, now: datetime) -> Reply:
        listed = self._book.list_after("", page * PAGE)[(page - 1) * PAGE :]
        cards = [(iccid, self._number_of(iccid), self._book.status(iccid, now)) for iccid in listed]
        return pages.card_list(page, cards)

    def _operate(self, iccid: str, op: str, now: datetime) -> Reply:
        latest = self._orders.get(iccid)
        if latest is not None and latest.state(now) is OperationState.PENDING:
            return sentence("transient", "-7", "此号码有业务正在办理")
        target = STOPPED if op == "stop" else RUNNING
        order = self._book.operate(iccid, target, f"{iccid}:{op}:{now.isoformat()}", now)
        if order is None and op == "stop":
            return sentence("already_done", "", "已存在停机类型为120000的停机记录")
        if order is None:
            return order_result("already_done", "-9", "后台返回：此产品已订购,不能重复订购")
        _remember(self._orders, iccid, order)
        return order_result("ok", "0", "处理成功")

    def _number_of(self, iccid: str) -> str:
        number = access_number_of(iccid)
        _remember(self._iccids, number, iccid[:_ICCID_CHARS])
        return number


def _remember(memory: OrderedDict[str, T], key: str, value: T) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
