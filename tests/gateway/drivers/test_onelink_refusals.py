import pytest
from tests.gateway.onelink_carrier import ACCOUNT, after_token, answer, onelink_driver
from tests.gateway.scripted_server import scripted_server
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.onelink_refusals import CHANGE_REST, CODES, code_of, refusal_of
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    CardResting,
    CardUnknown,
    GatewayError,
    Maintenance,
    QuotaExhausted,
    Throttled,
    Transient,
)

CARD = CardRef(1, "89860012345678900017")
ROWS: dict[str, type[GatewayError]] = {
    "500": Transient,
    "11000": BadRequest,
    "11011": CardUnknown,
    "12004": AuthRejected,
    "12009": CardUnknown,
    "12010": CardUnknown,
    "12022": AuthRejected,
    "12047": AlreadyDone,
    "12048": AlreadyDone,
    "12089": BadRequest,
    "12098": BadRequest,
    "12099": BadRequest,
    "12100": BadRequest,
    "19010": Transient,
}


async def outcome_of(code: object, message: object, *, change: bool) -> GatewayError:
    async with (
        scripted_server(after_token([answer(status=code, message=message)])) as server,
        onelink_driver(server.url, FakeClock()) as driver,
    ):
        with pytest.raises(GatewayError) as refused:
            await (driver.stop(ACCOUNT, CARD, "op-1") if change else driver.query_usage(ACCOUNT, CARD))
    return refused.value


def test_every_row_of_the_table_is_shown_here() -> None:
    assert set(ROWS) == set(CODES)


@pytest.mark.parametrize(("code", "expected"), ROWS.items())
async def test_each_code_says_what_is_to_be_done(code: str, expected: type[GatewayError]) -> None:
    error = await outcome_of(code, "原因", change=True)
    assert type(error) is expected
    assert str(error) == f"OneLink 拒绝（{code}）：原因"


@pytest.mark.parametrize("code", ["12047", "12048"])
async def test_a_question_cannot_be_done_already(code: str) -> None:
    assert type(await outcome_of(code, "卡已停机", change=False)) is BadResponse


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("接口调用过于频繁", Throttled),
        ("调用频率超过限制", Throttled),
        ("触发系统流量控制", Throttled),
        ("超过最大并发数", Throttled),
        ("qps 超限", Throttled),
        ("当日调用次数已达上限", QuotaExhausted),
        ("本月接口调用量超过限额", QuotaExhausted),
        ("系统维护中，请稍后再试", Maintenance),
        ("1分钟内调用次数过多", Throttled),
        ("同一卡号3分钟内不能重复办理业务", CardResting),
        ("该号码重复操作", CardResting),
        ("卡片流量套餐异常", Transient),
        ("", Transient),
    ],
)
async def test_the_wording_decides_about_a_code_that_is_not_known(
    message: str, expected: type[GatewayError]
) -> None:
    assert type(await outcome_of("19999", message, change=True)) is expected


async def test_a_change_refused_for_a_reason_unknown_may_have_been_made() -> None:
    error = await outcome_of("19999", "系统异常", change=True)
    assert isinstance(error, Transient)
    assert error.maybe_executed


async def test_a_card_changed_too_soon_rests_as_long_as_the_carrier_wants() -> None:
    error = await outcome_of("19999", "同一卡号3分钟内不能重复办理业务", change=True)
    assert isinstance(error, CardResting)
    assert error.wait == CHANGE_REST


async def test_a_card_asked_about_too_often_backs_off_by_itself() -> None:
    error = await outcome_of("19999", "同一卡号查询过于频繁", change=False)
    assert type(error) is Transient


async def test_a_known_code_outweighs_its_wording() -> None:
    assert type(await outcome_of("11011", "调用过于频繁", change=False)) is CardUnknown


async def test_a_number_in_a_message_is_masked() -> None:
    error = await outcome_of("11011", f"卡 {CARD.iccid} 不存在\r\n伪造的日志", change=False)
    assert CARD.iccid not in str(error)
    assert "0017" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("message", [None, 7, ["x"]])
def test_a_refusal_without_words_is_one(message: object) -> None:
    assert str(refusal_of("500", message, change=False)) == "OneLink 拒绝（500）"


@pytest.mark.parametrize("status", [None, True, 1.5, "", " 0", "0\n", "\uff19", "x" * 17, ["0"]])
async def test_an_answer_without_a_code_is_none(status: object) -> None:
    assert type(await outcome_of(status, "正确", change=False)) is BadResponse


def test_a_code_may_be_a_number() -> None:
    assert code_of({"status": 12021}) == "12021"
