"""The methods of China Telecom's platform and what each must be told."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from junhong_cmp.gateway.drivers.ctcc_codes import RESUME, STOP

TARGETS: Final = {"stop": STOP, "resume": RESUME}

_ICCID: Final = re.compile(r"[0-9A-F]{19}")
_ACCESS_NUMBER: Final = re.compile(r"(?:\d{11}|\d{13})", re.ASCII)
_PAGE: Final = re.compile(r"[1-9]\d{0,5}", re.ASCII)
_ICCID_CHARS: Final = 19


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its word in the log (empty if the order type decides) and the parameters it knows."""

    op: str
    parameters: frozenset[str]


METHODS: Final[Mapping[str, Method]] = {
    "queryTraffic": Method("usage", frozenset({"iccid", "access_number", "needDtl"})),
    "queryCardMainStatus": Method("status", frozenset({"iccid", "access_number"})),
    "realNameQueryIot": Method("realname", frozenset({"access_number"})),
    "getOnlineStatus": Method("session", frozenset({"iccid", "access_number"})),
    "getTelephone": Method("number", frozenset({"iccid"})),
    "getSIMList": Method("list", frozenset({"pageIndex"})),
    "disabledNumber": Method("", frozenset({"access_number", "acctCd", "orderTypeId"})),
}

Problem = tuple[str, str, str]
"""The word for the log, the platform's code and its text."""


def access_number_of(iccid: str) -> str:
    """Return the access number a simulated card has; both forms of its ICCID lead to it."""
    digest = hashlib.blake2b(iccid[:_ICCID_CHARS].encode(), digest_size=8).digest()
    return f"1410{int.from_bytes(digest, 'big') % 10**9:09d}"


def problem_of(method: Method, query: Mapping[str, str]) -> Problem | None:
    """Return what is wrong with a call's parameters, or None."""
    if method.op == "list":
        given = _PAGE.fullmatch(query.get("pageIndex", ""))
        return None if given else ("bad_request", "-2", "缺少页码")
    missing = ("bad_request", "-2", "缺少必需的参数")
    if method.op == "" and ("acctCd" not in query or query.get("orderTypeId") not in TARGETS.values()):
        return missing
    numbers = [(name, query[name]) for name in ("iccid", "access_number") if query.get(name)]
    if len(numbers) != 1 or numbers[0][0] not in method.parameters:
        return missing
    name, number = numbers[0]
    form = _ICCID if name == "iccid" else _ACCESS_NUMBER
    return None if form.fullmatch(number) else ("card_unknown", "-4", "号码格式有误")
