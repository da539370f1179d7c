"""Results as China Telecom's platform writes them: in XML, or refusals as a bare sentence."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from xml.sax.saxutils import escape

from junhong_cmp.gateway.drivers.ctcc_codes import OK
from junhong_cmp.gateway.simulators.dialect import Reply

TRANSACTION: Final = "1000000190000000000000000001"


def sentence(outcome: str, code: str, text: str) -> Reply:
    """Write a refusal without markup."""
    said = f"{code}：{text}" if code else text
    return Reply(HTTPStatus.OK, said.encode(), outcome=outcome, content_type="text/plain")


def order_result(outcome: str, code: str, text: str) -> Reply:
    """Write the result of an order, which does not say whose it was."""
    fields = {"RspType": "0" if code == OK else "1", "result": code, "resultMsg": text}
    return _xml("SvcCont", {**fields, "GROUP_TRANSACTIONID": TRANSACTION}, outcome=outcome)


def elements(fields: Mapping[str, str]) -> str:
    """Write texts as XML elements."""
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())


def _xml(root: str, fields: Mapping[str, str], *, outcome: str) -> Reply:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{root}>{elements(fields)}</{root}>'
    return Reply(HTTPStatus.OK, text.encode(), outcome=outcome, content_type="text/xml")
