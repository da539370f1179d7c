"""The import task as it travels in the queue: only an id, never the file's content."""

from datetime import timedelta
from typing import Final

import orjson

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.tasks import IMPORT_QUEUE, PAYLOAD_VERSION, TaskType

_TIMEOUT: Final = timedelta(hours=2)
_NEWER_VERSION_DELAY: Final = timedelta(minutes=5)
_IDS_END: Final = 2**63


def message_for(import_id: int) -> tuple[Task, EnqueueOptions]:
    """Return what to enqueue for an import; its id makes enqueuing it again harmless."""
    payload = orjson.dumps({"v": PAYLOAD_VERSION, "import_task_id": import_id})
    options = EnqueueOptions(queue=IMPORT_QUEUE, task_id=f"import:{import_id}", timeout=_TIMEOUT)
    return Task(TaskType.IOT_CARD_IMPORT, payload), options


def decode_payload(payload: bytes) -> int:
    """Return the import's id; unknown fields are ignored.

    Raises:
        PutBack: the payload is of a newer version; a newer worker may take it.
        SkipRetry: it is no payload of an import at all.

    """
    try:
        fields = orjson.loads(payload)
        version, import_id = fields["v"], fields["import_task_id"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SkipRetry("导入任务载荷无法解析") from error
    if type(version) is int and version > PAYLOAD_VERSION:
        raise PutBack(_NEWER_VERSION_DELAY, f"导入任务载荷版本 {version} 高于当前支持的 {PAYLOAD_VERSION}")
    if version != PAYLOAD_VERSION or type(import_id) is not int or not 0 < import_id < _IDS_END:
        raise SkipRetry("导入任务载荷的字段无效")
    return import_id
