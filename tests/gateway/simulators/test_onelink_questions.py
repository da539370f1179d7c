import pytest

from junhong_cmp.gateway.drivers import onelink
from junhong_cmp.gateway.simulators.dialect import Question
from junhong_cmp.gateway.simulators.onelink_questions import RefusedError, question_of

ICCID = "8986001440012345678"


@pytest.mark.parametrize(
    ("path", "op"),
    [
        (onelink.BASIC_INFO_PATH, "info"),
        (onelink.USAGE_PATH, "usage"),
        (onelink.STATUS_PATH, "status"),
        (onelink.REALNAME_PATH, "realname"),
        (onelink.SESSION_PATH, "session"),
    ],
)
def test_a_question_about_a_card_is_understood(path: str, op: str) -> None:
    assert question_of(path, {"iccid": ICCID}, "app") == Question(op, "app", (ICCID,))


@pytest.mark.parametrize(("kind", "op"), [(onelink.STOP, "stop"), (onelink.RESUME, "resume")])
def test_a_change_is_understood(kind: str, op: str) -> None:
    fields = {"iccid": ICCID, "operType": kind, "transid": "t-1"}
    assert question_of(onelink.CHANGE_PATH, fields, "app") == Question(op, "app", (ICCID,), "t-1")


def test_a_batch_is_understood() -> None:
    fields = {"iccids": f"{ICCID}_{ICCID}0", "queryDate": "202603"}
    question = question_of(onelink.USAGE_BATCH_PATH, fields, "app")
    assert question == Question("usage", "app", (ICCID, f"{ICCID}0"), fields={"queryDate": "202603"})


def test_a_refusal_carries_the_word_for_the_log() -> None:
    with pytest.raises(RefusedError) as refused:
        question_of(onelink.USAGE_PATH, {}, "app")
    assert refused.value.reply.outcome == "bad_request"
