import pytest

from junhong_cmp.gateway.drivers.unicom_codes import REALNAME_STATUSES, SIM_STATUSES, refusal_of
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    CardUnknown,
    GatewayError,
    Maintenance,
    QuotaExhausted,
    Throttled,
    Transient,
)

WORDS = [
    ("日调用量已用完", QuotaExhausted),
    ("超出配额", QuotaExhausted),
    ("月调用次数超限", QuotaExhausted),
    ("当日次数超限", QuotaExhausted),
    ("访问频率过高", Throttled),
    ("触发限流", Throttled),
    ("调用超限", Throttled),
    ("Rate limit exceeded", Throttled),
    ("系统维护中", Maintenance),
    ("系统升级", Maintenance),
    ("割接期间", Maintenance),
    ("Token校验失败", AuthRejected),
    ("签名错误", AuthRejected),
    ("鉴权失败", AuthRejected),
    ("认证失败", AuthRejected),
    ("无权限访问", AuthRejected),
    ("接口未授权", AuthRejected),
    ("app_id无效", AuthRejected),
    ("openId不存在", AuthRejected),
    ("时间戳已过期", AuthRejected),
    ("ICCID不存在", CardUnknown),
    ("无效的卡号", CardUnknown),
    ("未找到设备", CardUnknown),
    ("终端不存在", CardUnknown),
    ("Invalid ICCID", CardUnknown),
    ("Terminal not found", CardUnknown),
    ("参数错误", BadRequest),
    ("报文格式不正确", BadRequest),
    ("非法请求", BadRequest),
    ("iccids不能为空", BadRequest),
    ("不支持的操作", BadRequest),
    ("接口不存在", Transient),
    ("系统异常", Transient),
    ("", Transient),
]


@pytest.mark.parametrize(("message", "expected"), WORDS)
@pytest.mark.parametrize("changing", [False, True])
def test_each_refusal_leads_to_what_is_to_be_done(
    message: str, expected: type[GatewayError], *, changing: bool
) -> None:
    assert type(refusal_of("9999", message, changing=changing)) is expected


@pytest.mark.parametrize("message", ["卡已是停用状态", "卡已处于目标状态", "状态相同", "无需变更"])
def test_only_a_change_is_already_done(message: str) -> None:
    assert type(refusal_of("9999", message, changing=True)) is AlreadyDone
    assert type(refusal_of("9999", message, changing=False)) is Transient


def test_a_serial_number_used_twice_is_no_success() -> None:
    assert type(refusal_of("9999", "流水号重复，签名无效", changing=True)) is AuthRejected


def test_no_text_holds_a_whole_number_or_more_than_an_excerpt() -> None:
    error = refusal_of("9999", "ICCID 89860112345678900017 不存在" * 50, changing=False)
    assert "89860112345678900017" not in str(error)
    assert len(str(error)) < 300


def test_every_state_has_a_word_of_ours() -> None:
    ours = {"unknown", "inventory", "testing", "ready", "active", "suspended", "pre_cancelled", "cancelled"}
    assert {status for _, status in SIM_STATUSES.values()} <= ours
    assert set(SIM_STATUSES) == set("0123456789")
    assert REALNAME_STATUSES == {
        "0": "not_required",
        "1": "unverified",
        "2": "verified",
        "3": "verified",
    }
