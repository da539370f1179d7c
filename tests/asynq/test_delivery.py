import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_types import LeasedTask
from junhong_cmp.asynq.delivery import find_deadline_s, view_task

NOW_S = 1_800_000_000.0
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("timeout", "deadline", "expected"),
    [
        (0, 0, NOW_S + 1800),
        (60, 0, NOW_S + 60),
        (0, int(NOW_S) + 90, NOW_S + 90),
        (60, int(NOW_S) + 90, NOW_S + 60),
        (120, int(NOW_S) + 90, NOW_S + 90),
        (-5, -5, NOW_S + 1800),
    ],
)
def test_the_earlier_of_timeout_and_deadline_counts(timeout: int, deadline: int, expected: float) -> None:
    assert find_deadline_s(TaskMessage(timeout=timeout, deadline=deadline), NOW_S) == expected


@given(INT64, INT64)
def test_any_figures_of_a_foreign_producer_give_a_deadline_a_handler_can_read(
    timeout: int, deadline: int
) -> None:
    message = TaskMessage(id="1", type="a", timeout=timeout, deadline=deadline)
    leased = LeasedTask(message=message, queue="q", token="t", lease_until=0)
    task = view_task(leased, find_deadline_s(message, NOW_S))
    assert task.deadline.tzinfo is not None
