from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.retry import choose_delay, default_retry_delay, every_error_is_failure

TASK = ProcessingTask(id="1", type="a", deadline=datetime.now(UTC))


@pytest.mark.parametrize(
    ("retried", "least", "most"), [(0, 15, 44), (1, 16, 74), (5, 640, 814), (10, 10015, 10334)]
)
def test_the_delay_follows_the_formula_of_asynq(retried: int, least: int, most: int) -> None:
    for _ in range(200):
        delay = default_retry_delay(retried, ValueError(), TASK)
        assert timedelta(seconds=least) <= delay <= timedelta(seconds=most)


@pytest.mark.parametrize("retried", [10**6, 2**31 - 1])
def test_the_delay_stays_sane_however_often_a_task_was_retried(retried: int) -> None:
    assert default_retry_delay(retried, ValueError(), TASK) < timedelta(days=10)


def test_a_negative_count_of_a_foreign_producer_is_taken_as_none() -> None:
    assert default_retry_delay(-5, ValueError(), TASK) <= timedelta(seconds=44)


@pytest.mark.parametrize("answer", [5, 0.5, None, "1s", ValueError("policy")])
def test_a_policy_that_fails_or_answers_nonsense_gives_way_to_the_default(answer: object) -> None:
    def policy(*_: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert timedelta(seconds=15) <= choose_delay(policy, ValueError(), TASK) <= timedelta(seconds=44)
    assert choose_delay(lambda *_: timedelta(hours=1), ValueError(), TASK) == timedelta(hours=1)


def test_every_error_is_a_failure_by_default() -> None:
    assert every_error_is_failure(ValueError())
