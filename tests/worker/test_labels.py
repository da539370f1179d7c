"""What a worker says of itself."""

from junhong_cmp import config
from junhong_cmp.worker.labels import WorkerLabels
from junhong_cmp.worker.version import program_version


def test_what_is_shown_is_what_is_read() -> None:
    flags = {
        "redis.url": "redis://h",
        "postgres.dsn": "postgresql://h/db",
        "worker.role": "consumer",
        "worker.instance_name": "消费一号",
    }
    labels = WorkerLabels.of(config.resolve(flags=flags).settings)
    assert labels == WorkerLabels("consumer", "消费一号", program_version())
    assert WorkerLabels.read(labels.as_mapping()) == labels


def test_a_server_that_says_nothing_is_read_as_such() -> None:
    assert WorkerLabels.read({}) == WorkerLabels("", "", "")
