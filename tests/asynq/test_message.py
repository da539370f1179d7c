from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.asynq.errors import InvalidTaskError
from junhong_cmp.asynq.message import InvalidMessageError, decode, encode, prepare
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task

NOW = 1_800_000_000.25


def prepared(**options: Any) -> Any:
    return prepare(Task("t", b"{}"), EnqueueOptions(**options), NOW)


def test_defaults_are_those_of_asynq() -> None:
    one = prepared()
    assert one.message.queue == "default"
    assert one.message.retry == 25
    assert one.message.timeout == 1800
    assert (one.message.deadline, one.message.retention, one.message.unique_key) == (0, 0, "")
    assert len(one.message.id) == 36
    assert (one.state, one.score, one.unique_ttl_s) == (TaskState.PENDING, 0, 0)
    assert one.target == "asynq:{default}:pending"


def test_a_deadline_or_timeout_alone_leaves_the_other_off() -> None:
    one = prepared(deadline=datetime(2030, 1, 1, tzinfo=UTC)).message
    assert (one.timeout, one.deadline) == (0, 1_893_456_000)
    two = prepared(timeout=timedelta(seconds=30)).message
    assert (two.timeout, two.deadline) == (30, 0)


def test_fractions_of_seconds_are_rounded_up() -> None:
    one = prepared(timeout=timedelta(milliseconds=1), retention=timedelta(seconds=1.5)).message
    assert (one.timeout, one.retention) == (1, 2)


def test_negative_retries_are_none() -> None:
    assert prepared(max_retry=-1).message.retry == 0


@pytest.mark.parametrize(
    ("options", "state", "score"),
    [
        ({"process_in": timedelta(seconds=0)}, TaskState.PENDING, 0),
        ({"process_in": timedelta(seconds=-5)}, TaskState.PENDING, 0),
        ({"process_in": timedelta(seconds=0.1)}, TaskState.SCHEDULED, 1_800_000_001),
        ({"process_in": timedelta(seconds=0.75)}, TaskState.SCHEDULED, 1_800_000_001),
        ({"process_in": timedelta(seconds=0.76)}, TaskState.SCHEDULED, 1_800_000_002),
        ({"process_at": datetime.fromtimestamp(NOW + 9.9, UTC)}, TaskState.SCHEDULED, 1_800_000_011),
        ({"process_at": datetime.fromtimestamp(NOW - 1, UTC)}, TaskState.PENDING, 0),
        ({"group": "g"}, TaskState.AGGREGATING, 1_800_000_000),
        ({"group": "g", "process_in": timedelta(seconds=5)}, TaskState.SCHEDULED, 1_800_000_006),
    ],
)
def test_where_a_task_starts(options: dict[str, Any], state: TaskState, score: int) -> None:
    one = prepared(**options)
    assert (one.state, one.score) == (state, score)


def test_no_task_starts_before_its_time() -> None:
    at = datetime.fromtimestamp(NOW + 0.3, UTC)
    assert prepared(process_at=at).score >= at.timestamp()


def test_the_lock_of_a_scheduled_task_outlasts_its_wait() -> None:
    one = prepared(unique_for=timedelta(seconds=60), process_in=timedelta(seconds=10))
    assert one.unique_ttl_s == 71
    assert one.message.unique_key == "asynq:{default}:unique:t:99914b932bd37a50b983c5e7c90ae93b"
    assert prepared(unique_for=timedelta(seconds=60)).unique_ttl_s == 60


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queue": "  "}, "队列名不能为空"),
        ({"task_id": ""}, "任务编号不能为空"),
        ({"group": " "}, "分组名不能为空"),
        ({"unique_for": timedelta(seconds=0.9)}, "不能小于 1 秒"),
        ({"process_at": datetime(2030, 1, 1, tzinfo=UTC), "process_in": timedelta(1)}, "只能给一个"),
        ({"process_at": datetime(2030, 1, 1)}, "执行时刻必须带时区"),  # noqa: DTZ001 - the point
        ({"deadline": datetime(2030, 1, 1)}, "截止时刻必须带时区"),  # noqa: DTZ001 - the point
        ({"timeout": timedelta(seconds=-1)}, "超时不能为负"),
        ({"retention": timedelta(seconds=-1)}, "保留时长不能为负"),
        ({"max_retry": 2**31}, "重试次数超出范围"),
        ({"timeout": timedelta.max}, "时长超出范围"),
        ({"retention": timedelta.max}, "时长超出范围"),
        ({"unique_for": timedelta.max}, "时长超出范围"),
        ({"process_in": timedelta.max}, "时长超出范围"),
        ({"process_at": datetime.max.replace(tzinfo=UTC)}, "执行时刻超出范围"),
        ({"deadline": datetime(1970, 1, 1, tzinfo=UTC)}, "截止时刻超出范围"),  # on the wire: none
        ({"deadline": datetime.min.replace(tzinfo=UTC)}, "截止时刻超出范围"),  # on the wire: damaged
    ],
)
def test_rules_are_checked(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidTaskError, match=says):
        prepared(**options)


@pytest.mark.parametrize(
    "task",
    [Task("\ud800"), Task("t", headers={"k": "\ud800"}), Task("t", "text")],  # type: ignore[arg-type] # the point
)
def test_what_cannot_be_encoded_is_refused(task: Task) -> None:
    with pytest.raises(InvalidTaskError, match="无法编码"):
        prepare(task, EnqueueOptions(), NOW)


def test_a_blank_type_is_refused() -> None:
    with pytest.raises(InvalidTaskError, match="任务类型不能为空"):
        prepare(Task(" "), EnqueueOptions(), NOW)


@given(payload=st.binary(max_size=200), headers=st.dictionaries(st.text(), st.text(), max_size=4))
def test_messages_survive_the_wire(payload: bytes, headers: dict[str, str]) -> None:
    message = prepare(Task("t", payload, headers), EnqueueOptions(queue="q", task_id="i"), NOW).message
    assert decode(encode(message), task_id="i", queue="q") == message
    assert encode(decode(encode(message), task_id="i", queue="q")) == encode(message)


@given(raw=st.binary(max_size=100))
def test_garbage_never_raises_anything_else(raw: bytes) -> None:
    with pytest.raises(InvalidMessageError):
        decode(raw, task_id="an id no garbage holds", queue="q")


def test_unknown_fields_survive() -> None:
    raw = encode(prepared(task_id="i").message) + b"\xa2\x06\x03new"
    assert b"\xa2\x06\x03new" in encode(decode(raw, task_id="i", queue="default"))
