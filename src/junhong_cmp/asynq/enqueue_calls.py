"""Tasks as the keys and arguments of the enqueue scripts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import PreparedTask, compose, encode
from junhong_cmp.asynq.plain_form import PlainForm
from junhong_cmp.asynq.scripting import ScriptArg
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.asynq.task_ids import new_ids


def task_keys(task: PreparedTask) -> tuple[str, str, str]:
    """Return hash, unique lock (the hash again = none) and target, as ``_enqueue.lua`` takes them."""
    key = queue_keys(task.message.queue).task(task.message.id)
    return key, task.message.unique_key or key, task.target


def task_args(task: PreparedTask) -> tuple[ScriptArg, ...]:
    """Return id, message, state, score, lock time and group of a task, as ``_enqueue.lua`` takes them."""
    message = task.message
    return message.id, encode(message), task.state, task.score, task.unique_ttl_s, message.group_key


@dataclass(slots=True)
class BulkCall:
    """One call of ``enqueue.lua``, and of each task in it the place in the request, id and first state."""

    queue: str
    keys: list[str]
    args: list[ScriptArg]
    tasks: list[tuple[int, str, TaskState]] = field(default_factory=list)

    def add(self, index: int, prepared: PreparedTask) -> None:
        """Add any task."""
        self.tasks.append((index, prepared.message.id, prepared.state))
        if prepared.plain:
            self.keys.append(queue_keys(self.queue).task(prepared.message.id))
            self.args += (prepared.message.id, encode(prepared.message), "")
        else:
            self.keys += task_keys(prepared)
            self.args += task_args(prepared)


class BulkRequest:
    """A bulk request is the part of a bulk enqueue that goes to one queue."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._entries: list[tuple[int, Task, EnqueueOptions, PlainForm | None]] = []

    def add(self, index: int, task: Task, options: EnqueueOptions, form: PlainForm | None) -> None:
        """Take a checked task; with a form, if it is plain."""
        self._entries.append((index, task, options, form))

    def calls(self, size: int, now: float) -> Iterator[BulkCall]:
        """Make the calls one after the other, each with at most ``size`` tasks."""
        for start in range(0, len(self._entries), size):
            yield self._call(self._entries[start : start + size], now)

    def _call(
        self, entries: Sequence[tuple[int, Task, EnqueueOptions, PlainForm | None]], now: float
    ) -> BulkCall:
        names = queue_keys(self._queue)
        call = BulkCall(self._queue, [names.groups, names.pending], [int(now * 1e9)])
        keys, args, tasks, prefix, ids = (
            call.keys,
            call.args,
            call.tasks,
            names.task_prefix,
            new_ids(len(entries)),
        )
        for index, task, options, form in entries:
            if form is None:
                call.add(index, compose(task, options, now))
                continue
            task_id = options.task_id if options.task_id is not None else next(ids)
            keys.append(prefix + task_id)
            args += (task_id, form.encode(task.payload, task_id.encode()), "")
            tasks.append((index, task_id, TaskState.PENDING))
        return call
