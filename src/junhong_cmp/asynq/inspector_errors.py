"""Why the inspector refuses an operation; nothing was changed."""

from collections.abc import Sequence

from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.states import TaskState


class InspectionError(AsynqError):
    """Root of the inspector's refusals."""


class QueueNotFoundError(InspectionError):
    """No queue of this name is registered."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        super().__init__(f"队列不存在：{queue}")


class QueueNotEmptyError(InspectionError):
    """A queue holds tasks that forbid deleting it."""

    def __init__(self, queue: str, active: int, others: int) -> None:
        self.queue = queue
        self.active = active
        self.others = others
        remedy = (
            "请先停止处理，或用修复命令清理无主任务"
            if active
            else "确要连同任务一起删除请强制删除（--force）"
        )
        super().__init__(f"队列不能删除：{queue} 中有 {active} 个处理中、{others} 个其他条目；{remedy}")


class QueuePauseError(InspectionError):
    """A queue is paused already, or is not paused."""

    def __init__(self, queue: str, *, paused: bool) -> None:
        self.queue = queue
        self.paused = paused
        super().__init__(f"队列已处于暂停状态：{queue}" if paused else f"队列并未暂停：{queue}")


class TaskNotFoundError(InspectionError):
    """A queue holds no task of this id."""

    def __init__(self, queue: str, task_id: str) -> None:
        self.queue = queue
        self.task_id = task_id
        super().__init__(f"任务不存在：队列 {queue}，编号 {task_id}")


class TaskStateError(InspectionError):
    """A task is in a state the operation is not for; ``state`` is it, None if the operation names no one."""

    def __init__(self, queue: str, task_id: str, reason: str, state: TaskState | None = None) -> None:
        self.queue = queue
        self.task_id = task_id
        self.state = state
        super().__init__(f"任务{reason}：队列 {queue}，编号 {task_id}")


class TaskNotRunningError(InspectionError):
    """Nobody works on a task of this id; ``places`` are the queues that hold one, and in which state."""

    def __init__(self, task_id: str, places: Sequence[tuple[str, TaskState]]) -> None:
        self.task_id = task_id
        self.places = tuple(places)
        where = "；".join(f"在队列 {queue} 中，状态 {state.value}" for queue, state in places)
        super().__init__(
            f"任务没有在执行：编号 {task_id}，{where}" if where else f"任务不存在：编号 {task_id}"
        )


class UnsupportedStateError(InspectionError):
    """A bulk operation is not for tasks of this state."""

    def __init__(self, operation: str, state: TaskState) -> None:
        self.state = state
        super().__init__(f"{operation}不适用于状态 {state.value}")
