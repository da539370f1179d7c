"""What China Telecom's platform writes: XML, JSON or a bare sentence, whatever its headers say."""

import re
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.json_body import decode_object, excerpt

Fields = dict[str, object]

_DEEPEST: Final = 12
_WRAPPED: Final = "NEW_DATA_TICKET_QRsp"
_CODE_NAMES: Final = ("IRESULT", "resultCode", "result", "RESULT", "RspCode", "rspCode", "rspcode")
_TEXT_NAMES: Final = ("SMSG", "resultMsg", "RspDesc", "rspDesc", "rspdesc")
_MINUS_SIGN: Final = "\u2212"
_SENTENCE: Final = re.compile(r"(?:([-\u2212]?[0-9]{1,9})\s*(?:[:\uff1a,\uff0c]\s*|$))?(.{0,400})")
_CHINESE: Final = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class CtccReply:
    """What came back: the result ``code`` ("0" is success), the platform's ``text`` and all ``fields``."""

    code: str
    text: str
    fields: Fields


def read_reply(body: bytes) -> CtccReply:
    """Read an answer.

    Raises:
        BadResponse: it is none of the platform's forms, or says nothing of its success.

    """
    text = _decoded(body).strip().removeprefix("\ufeff").lstrip()
    if text.startswith("<"):
        return _coded(_unwrapped(_parse_xml(text)), body)
    if text.startswith("{"):
        return _coded(_unwrapped(decode_object(text.encode())), body)
    return _sentence(text, body)


def _decoded(body: bytes) -> str:
    """Decode as UTF-8 or, as older parts of the platform write, as GB18030."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        pass
    try:
        return body.decode("gb18030")
    except UnicodeDecodeError as error:
        raise BadResponse("网关响应无效：既不是 UTF-8 也不是 GB18030") from error


def _parse_xml(text: str) -> Fields:
    """Parse without DTD, entities or external references: a page that brings its own is no answer."""
    try:
        root = fromstring(text, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BadResponse(f"网关响应无效：不是合法的 XML（{excerpt(text.encode())}）") from error
    value = _value_of(root, depth=0)
    return value if isinstance(value, dict) else {_name_of(root): value}


def _value_of(element: Element, *, depth: int) -> object:
    if depth > _DEEPEST:
        raise BadResponse("网关响应无效：XML 嵌套过深")
    if len(element) == 0:
        return (element.text or "").strip()
    fields: Fields = {}
    for child in element:
        name, value = _name_of(child), _value_of(child, depth=depth + 1)
        if name in fields:  # two readers could disagree about which one counts
            raise BadResponse("网关响应无效：XML 元素重复")
        fields[name] = value
    return fields


def _name_of(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _unwrapped(fields: Fields) -> Fields:
    """Return the fields of a usage answer from within its wrapper, which in JSON is a list of one."""
    inner = fields.get(_WRAPPED)
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return inner if isinstance(inner, dict) else fields


def _coded(fields: Fields, body: bytes) -> CtccReply:
    code = _first(fields, _CODE_NAMES)
    if code is None:
        raise BadResponse(f"网关响应无效：没有处理结果代码（{excerpt(body)}）")
    return CtccReply(code, _first(fields, _TEXT_NAMES) or "", fields)


def _first(fields: Fields, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def _sentence(text: str, body: bytes) -> CtccReply:
    """Read ``code：text`` or a text alone, which the platform answers without any markup to refuse a call."""
    found = _SENTENCE.fullmatch(text)
    if found is None or not text.isprintable():
        raise BadResponse(f"网关响应无效：无法识别的内容（{excerpt(body)}）")
    code, said = (found[1] or "").replace(_MINUS_SIGN, "-"), found[2] or ""
    if code == "0" or not (code or _CHINESE.search(said)):
        raise BadResponse(f"网关响应无效：无法识别的内容（{excerpt(body)}）")
    return CtccReply(code, said, {})
