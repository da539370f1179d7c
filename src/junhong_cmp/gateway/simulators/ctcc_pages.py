"""Answers as China Telecom's platform writes them: XML for some methods, JSON for others."""

from collections.abc import Mapping, Sequence
from datetime import timedelta, timezone
from http import HTTPStatus
from typing import Final

import orjson

from junhong_cmp.gateway.drivers.ctcc_codes import NO_REAL_NAME, OK, STATUSES
from junhong_cmp.gateway.simulator_cards import RUNNING, STOPPED, Session
from junhong_cmp.gateway.simulators.ctcc_results import TRANSACTION, elements
from junhong_cmp.gateway.simulators.dialect import Reply

_CARRIER_TIME: Final = timezone(timedelta(hours=8))
_CODES: Final = {"ready": "1", "testing": "2", RUNNING: "4", STOPPED: "5"}
_HUNDRED: Final = 100


def usage(number: str, used_kb: int) -> Reply:
    """Write a month's usage."""
    volume = volume_of(used_kb)
    fields = {"CHARGE_CNT_CH": "0元", "IRESULT": OK, "TOTALCOUNT": "", "TOTAL_BYTES_CNT": volume}
    inner = elements({**fields, "GROUP_TRANSACTIONID": TRANSACTION, "number": number})
    name = "web:NEW_DATA_TICKET_QRsp"
    text = f'<root><{name} xmlns:web="http://www.example.org/webservice">{inner}</{name}></root>'
    return Reply(HTTPStatus.OK, text.encode(), content_type="text/xml")


def volume_of(used_kb: int) -> str:
    """Return a volume as the platform writes it: in MB, cut to two places."""
    cents = used_kb * _HUNDRED // 1024
    return f"{cents // _HUNDRED}.{cents % _HUNDRED:02d}MB"


def status(number: str, state: str) -> Reply:
    """Write a card's main state."""
    code = _CODES[state]
    product = {"productMainStatusCd": code, "productMainStatusName": STATUSES[code][0]}
    return _json({**_head(), "GROUP_TRANSACTIONID": TRANSACTION, "number": number, "productInfo": [product]})


def realname(number: str, *, registered: bool) -> Reply:
    """Write whether somebody is registered for a card."""
    person = {"certNumber": "3201**********0011" if registered else "null", "number": number}
    code, text = (OK, "处理成功") if registered else (NO_REAL_NAME, "没有实名信息")
    result = f"<RESULT>{elements({'prodStatusName': '已激活', **person})}</RESULT>"
    rest = elements({"resultCode": code, "resultMsg": text, "GROUP_TRANSACTIONID": TRANSACTION})
    return Reply(HTTPStatus.OK, f"<SvcCont>{result}{rest}</SvcCont>".encode(), content_type="text/xml")


def session(number: str, found: Session | None) -> Reply:
    """Write whether a card is on the network."""
    description = {"result": "-1", "msisdn": f"86{number}", "framedIpAddress": "", "startTime": ""}
    if found is not None:
        began = f"{found.since.astimezone(_CARRIER_TIME):%Y-%m-%d %H:%M:%S}"
        description |= {"result": "0", "framedIpAddress": found.ip, "startTime": began}
    return _json({**_head(), "groupTransactionId": TRANSACTION, "description": description})


def telephone(number: str) -> Reply:
    """Write a card's access number."""
    return _json({"RESULT": OK, "SMSG": number, "GROUP_TRANSACTIONID": TRANSACTION})


def card_list(page: int, cards: Sequence[tuple[str, str, str]]) -> Reply:
    """Write a page of cards: ICCID (19 characters), access number and state of each."""
    listed = [
        {"iccid": iccid[:19], "accNumber": number, "simStatus": [_CODES[state]]}
        for iccid, number, state in cards
    ]
    description = {"pageIndex": str(page), "simList": listed}
    return _json({**_head(), "groupTransactionId": TRANSACTION, "description": description})


def _head() -> dict[str, object]:
    return {"resultCode": OK, "resultMsg": "处理成功"}


def _json(fields: Mapping[str, object]) -> Reply:
    return Reply(HTTPStatus.OK, orjson.dumps(fields))
