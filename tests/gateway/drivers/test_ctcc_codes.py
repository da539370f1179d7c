import pytest

from junhong_cmp.gateway.drivers.ctcc_body import CtccReply
from junhong_cmp.gateway.drivers.ctcc_codes import ORDER_TIME, STATUSES, refusal_of
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    CardResting,
    CardUnknown,
    GatewayError,
    Maintenance,
    Throttled,
    Transient,
)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("-1", "无权限", AuthRejected),
        ("-2", "缺参数", BadRequest),
        ("-3", "签名", AuthRejected),
        ("-4", "号码不存在", CardUnknown),
        ("-5", "请不要重复订购", Transient),
        ("-7", "办理中", Transient),
        ("101004", "频繁", Throttled),
        ("9001", "系统忙", Transient),
        ("-9", "调用频繁", Throttled),
        ("-9", "系统维护中", Maintenance),
        ("", "系统维护中", Maintenance),
        ("", "已存在停机类型为120000的停机记录", BadResponse),
        ("", "别的什么", BadResponse),
    ],
)
def test_each_refusal_of_a_question_leads_to_what_is_to_be_done(
    code: str, text: str, expected: type[GatewayError]
) -> None:
    assert type(refusal_of(CtccReply(code, text, {}), changing=False)) is expected


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("-1", "无权限", AuthRejected),
        ("-4", "号码不存在", CardUnknown),
        ("-5", "", AlreadyDone),
        ("-9", "已订购功能产品,不能重复订购", AlreadyDone),
        ("", "已存在相关停机记录，无需再次办理停机", AlreadyDone),
        ("100008", "已存在停机类型为120000的停机记录", AlreadyDone),
        ("100008", "卡状态不允许", Transient),
        ("-9", "后台异常", Transient),
    ],
)
def test_each_refusal_of_a_change_leads_to_what_is_to_be_done(
    code: str, text: str, expected: type[GatewayError]
) -> None:
    assert type(refusal_of(CtccReply(code, text, {}), changing=True)) is expected


@pytest.mark.parametrize("code", ["-9", "9001", "4711"])
def test_a_change_that_failed_somewhere_behind_may_have_been_carried_out(code: str) -> None:
    error = refusal_of(CtccReply(code, "", {}), changing=True)
    assert isinstance(error, Transient)
    assert error.maybe_executed


def test_a_card_with_an_order_under_way_rests() -> None:
    error = refusal_of(CtccReply("-7", "", {}), changing=True)
    assert isinstance(error, CardResting)
    assert error.wait == ORDER_TIME


def test_no_text_holds_a_whole_number_or_more_than_an_excerpt() -> None:
    error = refusal_of(CtccReply("-4", "号码89860012345678900017不存在" * 50, {}), changing=False)
    assert "89860012345678900017" not in str(error)
    assert len(str(error)) < 300


def test_every_state_has_a_word_of_ours() -> None:
    ours = {"unknown", "inventory", "testing", "ready", "active", "suspended", "pre_cancelled", "cancelled"}
    assert {status for _, status in STATUSES.values()} <= ours
