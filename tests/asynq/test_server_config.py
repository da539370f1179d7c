from datetime import timedelta
from typing import Any

import pytest

from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.server_config import Intervals, ServerConfig, ServerConfigError


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"queues": {}}, "至少要有一个队列"),
        ({"queues": {" ": 1}}, "队列名不能为空"),
        ({"queues": {"a": 0}}, "权重必须为正整数"),
        ({"shutdown_timeout": timedelta(seconds=-1)}, "shutdown_timeout"),
        ({"intervals": Intervals(heartbeat=timedelta(seconds=16))}, "heartbeat"),
        ({"max_message_bytes": 0}, "max_message_bytes"),
        ({"archive": ArchiveLimits(size=-1, age=timedelta(0))}, "archive"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ServerConfigError, match=text):
        ServerConfig(**settings)


def test_the_defaults_are_those_of_asynq() -> None:
    config = ServerConfig()
    assert (dict(config.queues), config.shutdown_timeout) == ({"default": 1}, timedelta(seconds=8))
    assert (config.intervals.lease, config.intervals.heartbeat) == (
        timedelta(seconds=30),
        timedelta(seconds=5),
    )
