import pytest

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.imports.tasks import decode_payload, message_for


def test_the_payload_is_a_stable_wire_format() -> None:
    task, options = message_for(42)
    assert task.type == "iot_card:import"
    assert task.payload == b'{"v":1,"import_task_id":42}'
    assert (options.queue, options.task_id) == ("import", "import:42")
    assert decode_payload(task.payload) == 42


def test_unknown_fields_of_a_newer_producer_are_ignored() -> None:
    assert decode_payload(b'{"v":1,"import_task_id":7,"more":[]}') == 7


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff", b"[]", b"null", b"1", b"{}", b'{"v":1}', b'{"v":"1","import_task_id":1}',
     b'{"v":1,"import_task_id":"1"}', b'{"v":1,"import_task_id":true}', b'{"v":1,"import_task_id":0}',
     b'{"v":1,"import_task_id":9223372036854775808}'],
)  # fmt: skip
def test_what_is_no_payload_is_never_retried(payload: bytes) -> None:
    with pytest.raises(SkipRetry):
        decode_payload(payload)


def test_a_newer_version_waits_for_a_newer_worker() -> None:
    with pytest.raises(PutBack, match="版本 2"):
        decode_payload(b'{"v":2,"import_task_id":1}')
