import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.drivers.ctcc_body import CtccReply, read_reply
from junhong_cmp.gateway.errors import BadResponse, GatewayError

USAGE_XML = (
    '<root><web:NEW_DATA_TICKET_QRsp xmlns:web="http://www.example.org/webservice"><IRESULT>0</IRESULT>'
    "<TOTAL_BYTES_CNT> 12.34MB </TOTAL_BYTES_CNT><number>1410028214051</number>"
    "</web:NEW_DATA_TICKET_QRsp></root>"
)
XXE = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><IRESULT>0</IRESULT><number>&x;</number></r>'
LAUGHS = (
    '<!DOCTYPE r [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;">]>'
    "<r><IRESULT>0</IRESULT><number>&c;</number></r>"
)


@pytest.mark.parametrize(
    "body",
    [
        USAGE_XML.encode(),
        f'\ufeff<?xml version="1.0" encoding="GBK"?>\n{USAGE_XML}'.encode(),
        b'{"NEW_DATA_TICKET_QRsp":[{"IRESULT":"0","TOTAL_BYTES_CNT":"12.34MB","number":"1410028214051"}]}',
    ],
)
def test_a_usage_answer_is_read_in_either_form(body: bytes) -> None:
    reply = read_reply(body)
    assert (reply.code, reply.fields["TOTAL_BYTES_CNT"], reply.fields["number"]) == (
        "0",
        "12.34MB",
        "1410028214051",
    )


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("-4：没有这个号码", "-4", "没有这个号码"),
        ("\u22124:没有这个号码\n", "-4", "没有这个号码"),
        ("101004", "101004", ""),
        ("已存在停机类型为120000的停机记录", "", "已存在停机类型为120000的停机记录"),
        ("<SvcCont><result>-7</result><resultMsg>业务办理中</resultMsg></SvcCont>", "-7", "业务办理中"),
        ('{"resultCode":-1,"resultMsg":"无权限"}', "-1", "无权限"),
        ("<r><RspType>1</RspType><RspCode>-9</RspCode><RspDesc>后台</RspDesc></r>", "-9", "后台"),
        ("<IRESULT>3</IRESULT>", "3", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_refusals_are_read_in_every_form_and_both_encodings(
    body: str, code: str, text: str, encoding: str
) -> None:
    reply = read_reply(body.encode(encoding))
    assert (reply.code, reply.text) == (code, text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   \r\n",
        b"0",
        "0：成功".encode(),
        b"<html><body><h1>502",
        b"<html><body><h1>502 Bad Gateway</h1></body></html>",
        XXE.encode(),
        LAUGHS.encode(),
        b"<r><IRESULT>0</IRESULT><number>1</number><number>2</number></r>",
        b"<r>" + b"<a>" * 50_000 + b"</a>" * 50_000 + b"</r>",
        b"<r><IRESULT>0</IRESULT>",
        b'{"resultCode":"0","resultCode":"0"}',
        b'{"resultCode":NaN}',
        b'{"resultCode":true}',
        b'{"resultCode":null}',
        b"[]",
        b"\xff\xfe\xff\xff\x81",
        b"\x00\x01",
        ("长" * 500).encode(),
        "".join(f"<{name}/>" for name in "ab").encode(),
        b"<r xmlns:x='http://x'><y:z/></r>",
    ],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(BadResponse) as refused:
        read_reply(body)
    assert len(str(refused.value)) < 300


@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: f"<a>{text}</a>".encode(errors="replace"))
)
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    try:
        reply = read_reply(body)
    except GatewayError:
        return
    assert isinstance(reply, CtccReply)


def test_what_it_says_about_whole_card_numbers_is_masked() -> None:
    with pytest.raises(BadResponse) as refused:
        read_reply(b"<html>89860012345678900017</html>")
    assert "89860012345678900017" not in str(refused.value)
