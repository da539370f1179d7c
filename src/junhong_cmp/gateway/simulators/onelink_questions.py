"""What is asked of the simulated OneLink, in an address or a JSON body, about a card by one number."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.drivers import onelink
from junhong_cmp.gateway.drivers.onelink_batch import MAX_BATCH
from junhong_cmp.gateway.simulators.dialect import Question, Reply, Request

MSISDN_PREFIX: Final = "898600"
"""A simulated card whose ICCID begins so has the 13 digits that follow as its MSISDN."""

_OPS: Final[Mapping[str, str]] = {
    onelink.BASIC_INFO_PATH: "info",
    onelink.USAGE_PATH: "usage",
    onelink.STATUS_PATH: "status",
    onelink.REALNAME_PATH: "realname",
    onelink.SESSION_PATH: "session",
}
_CHANGES: Final = {onelink.STOP: "stop", onelink.RESUME: "resume"}
PATHS: Final = frozenset({*_OPS, onelink.USAGE_BATCH_PATH, onelink.CHANGE_PATH})
_NUMBERS: Final = {
    "iccid": re.compile(r"[0-9A-F]{19,20}"),
    "msisdn": re.compile(r"1[0-9]{10,12}"),
    "imsi": re.compile(r"460[0-9]{12}"),
}


class RefusedError(Exception):
    """The carrier refuses; ``reply`` is how it says so, with the word for it in the log."""

    def __init__(self, code: str, message: str, outcome: str) -> None:
        super().__init__(message)
        self.reply = Reply(
            HTTPStatus.OK, orjson.dumps({"status": code, "message": message, "result": []}), outcome
        )


def question_of(path: str, fields: Mapping[str, str], appid: str) -> Question:
    """Read what is asked by a customer who was let in.

    Raises:
        RefusedError: it is not a question of the interface.

    """
    if path == onelink.USAGE_BATCH_PATH:
        month = {"queryDate": fields.get("queryDate", "")}
        return Question("usage", appid, _iccids(fields), fields=month)
    if path == onelink.CHANGE_PATH:
        op = _CHANGES.get(fields.get("operType", ""))
        if op is None:
            raise RefusedError("11000", "operType 不正确", "bad_request")
        return Question(op, appid, (_iccid(fields),), fields["transid"])
    return Question(_OPS[path], appid, (_iccid(fields),))


def fields_of(request: Request) -> Mapping[str, str]:
    """Return the parameters of a request, all of them texts.

    Raises:
        RefusedError: they are not.

    """
    if request.method == "GET":
        return dict(request.query)
    try:
        fields = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise RefusedError("11000", "请求不是合法的 JSON", "bad_request") from error
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise RefusedError("11000", "请求参数错误", "bad_request")
    return fields


def _iccid(fields: Mapping[str, str]) -> str:
    """Return the ICCID of the card that is named by exactly one of its numbers."""
    kinds = [kind for kind in _NUMBERS if kind in fields]
    if len(kinds) != 1 or not _NUMBERS[kinds[0]].fullmatch(fields[kinds[0]]):
        raise RefusedError("11000", "msisdn、iccid、imsi 应有且只有一项，且格式正确", "bad_request")
    number = fields[kinds[0]]
    if kinds[0] == "imsi":
        raise RefusedError("11011", "卡号不存在", "card_unknown")
    return number if kinds[0] == "iccid" else f"{MSISDN_PREFIX}{number:0>13}"


def _iccids(fields: Mapping[str, str]) -> tuple[str, ...]:
    iccids = tuple(fields.get("iccids", "").split("_"))
    if len(iccids) > MAX_BATCH or not all(_NUMBERS["iccid"].fullmatch(iccid) for iccid in iccids):
        raise RefusedError("11000", f"iccids 应为下划线分隔的 1 至 {MAX_BATCH} 个卡号", "bad_request")
    return iccids
