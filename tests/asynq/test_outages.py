import itertools
from datetime import timedelta

import pytest
from redis import exceptions
from structlog.testing import capture_logs
from tests.waiting import FakeClock

from junhong_cmp.asynq.outages import Backoff, OutageLog, is_outage


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("Connection refused"),
        exceptions.TimeoutError("Timeout reading"),
        exceptions.BusyLoadingError("LOADING"),
        exceptions.ReadOnlyError("You can't write against a read only replica."),
        exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        exceptions.ResponseError("MASTERDOWN Link with MASTER is down"),
        exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."),
        exceptions.ResponseError("BUSY Redis is busy running a script."),
        exceptions.NoPermissionError("this user has no permissions"),
        exceptions.ResponseError(
            "ACL failure in script: User w has no permissions to run the 'zadd' command"
        ),
        exceptions.ClusterDownError("CLUSTERDOWN The cluster is down"),
        exceptions.MaxConnectionsError("Too many connections"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_faults_of_redis_as_a_whole_are_outages(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize(
    "error", [exceptions.ResponseError("WRONGTYPE Operation against a key"), ValueError("x"), KeyError("y")]
)
def test_faults_of_one_task_are_not(error: Exception) -> None:
    assert not is_outage(error)


def test_waits_grow_to_the_cap_with_jitter_and_begin_anew_after_success() -> None:
    backoff = Backoff(timedelta(seconds=5), first=timedelta(seconds=1))
    waits = [backoff.next_delay() for _ in range(8)]
    for wait, bound in zip(waits, [1, 2, 4, 5, 5, 5, 5, 5], strict=True):
        assert bound / 2 <= wait <= bound
    backoff.reset()
    assert backoff.next_delay() <= 1


def test_an_outage_is_told_at_its_begin_seldom_between_and_at_its_end() -> None:
    with capture_logs() as logs:
        outage = OutageLog("取任务")
        outage.worked()
        for _ in range(1000):
            outage.failed(ConnectionError("x" * 1000))
        outage.worked()
        outage.worked()
    assert [entry["event"] for entry in logs] == ["Redis 操作失败，将自动重试", "Redis 操作已恢复"]
    assert (logs[1]["attempts"], len(logs[0]["error"])) == (1000, 200)


def test_a_long_outage_is_told_again() -> None:
    with capture_logs() as logs:
        outage = OutageLog("取任务", repeat=timedelta(0))
        outage.failed(ConnectionError())
        outage.failed(ConnectionError())
    assert [entry["attempts"] for entry in logs] == [1, 2]


def test_an_outage_of_hours_is_told_ever_more_seldom_and_the_next_one_anew(
    clock: FakeClock,
) -> None:
    told: list[int] = []
    with capture_logs() as logs:
        outage = OutageLog("取任务", clock=clock.monotonic)
        for second in range(3600):
            outage.failed(TimeoutError())
            if len(logs) > len(told):
                told.append(second)
            clock.advance(1)
        outage.worked()
        outage.failed(TimeoutError())
        clock.advance(10)
        outage.failed(TimeoutError())
    assert told[:6] == [0, 10, 30, 70, 150, 310]
    assert {later - earlier for earlier, later in itertools.pairwise(told[6:])} == {300}
    assert [entry["attempts"] for entry in logs[-2:]] == [1, 2]
    assert "error" not in logs[0], "an error without a text is told by its class"
