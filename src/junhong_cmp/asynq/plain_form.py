"""Messages of plain tasks: what they have in common is encoded once."""

from typing import Final

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.message import prepare
from junhong_cmp.asynq.task import EnqueueOptions, Task

_PAYLOAD_TAG: Final = b"\x12"
_ID_TAG: Final = b"\x1a"
_MAX_FORMS: Final = 1000
_SEVEN_BITS: Final = 0x7F


class PlainForm:
    """A plain form encodes the messages of plain tasks that share type and options.

    Such messages differ in payload and id only, fields 2 and 3, and protobuf writes fields in the order of
    their numbers. So each message is four pieces of bytes, equal to what protobuf makes of it.
    """

    __slots__ = ("_head", "_tail")

    def __init__(self, task_type: str, options: EnqueueOptions) -> None:
        """Check type and options and encode what they give.

        Raises:
            InvalidTaskError: a rule of the protocol is broken.

        """
        message = prepare(Task(task_type), options, 0).message
        self._head = TaskMessage(type=message.type).SerializeToString()
        for field in ("type", "payload", "id"):
            message.ClearField(field)
        self._tail = message.SerializeToString()

    def encode(self, payload: bytes, task_id: bytes) -> bytes:
        """Return the bytes of the ``msg`` hash field."""
        head = self._head + _PAYLOAD_TAG + _length(payload) + payload if payload else self._head
        return b"".join((head, _ID_TAG, _length(task_id), task_id, self._tail))


class PlainForms:
    """Plain forms find the form of each plain task of a client, and keep it for the next of its kind.

    There are few kinds, unless deadlines differ from task to task; then all are forgotten now and again.
    """

    def __init__(self, max_payload_bytes: int) -> None:
        self._max_payload_bytes = max_payload_bytes
        self._forms: dict[tuple[object, ...], PlainForm] = {}

    @property
    def size(self) -> int:
        """How many forms are kept."""
        return len(self._forms)

    def find(self, task: Task, options: EnqueueOptions) -> PlainForm | None:
        """Return the form; None for a task that is not plain, or not evidently right.

        Raises:
            InvalidTaskError: type or options break a rule of the protocol.

        """
        payload, task_id = task.payload, options.task_id
        if (
            not _is_plain(task, options)
            or type(payload) is not bytes
            or len(payload) > self._max_payload_bytes
        ):
            return None
        if task_id is not None and not (task_id.isascii() and task_id.strip()):
            return None
        limits = (options.max_retry, options.timeout, options.deadline, options.retention)
        key = (task.type, options.queue, limits)
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= _MAX_FORMS:
                self._forms.clear()
            form = self._forms[key] = PlainForm(task.type, options)
        return form


def _is_plain(task: Task, options: EnqueueOptions) -> bool:
    return (
        options.unique_for is None
        and options.group is None
        and options.process_at is None
        and options.process_in is None
        and not task.headers
    )


def _length(data: bytes) -> bytes:
    """Return a length as protobuf's varint."""
    left = len(data)
    if left <= _SEVEN_BITS:
        return bytes((left,))
    out = bytearray()
    while left > _SEVEN_BITS:
        out.append(left & _SEVEN_BITS | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
