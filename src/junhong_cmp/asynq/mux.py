"""Routing of tasks to handlers by task type."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final

from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.processing_task import Handler, ProcessingTask

HandlerFunction = Callable[[ProcessingTask], Awaitable[None]]
Middleware = Callable[[Handler], Handler]

_TYPES_KNOWN: Final = 4096
"""Types whose handler is remembered; a type is a stranger's text, so their number must be bounded."""


class UnknownTaskTypeError(AsynqError):
    """No handler is registered for the task's type; the server puts such a task back for a newer worker."""

    def __init__(self, task_type: str) -> None:
        self.task_type = task_type
        super().__init__(f"没有处理器能处理任务类型 {task_type!r}，请确认 Worker 版本与注册的处理器")


class HandlerPatternError(AsynqError):
    """A pattern cannot be registered: it is blank or already taken."""


class FunctionHandler:
    """A function handler lets a plain coroutine function stand as a handler."""

    def __init__(self, function: HandlerFunction) -> None:
        self._function = function

    async def process_task(self, task: ProcessingTask) -> None:
        """Call the function with the task."""
        await self._function(task)


class ServeMux:
    """A serve mux hands a task to the handler of its type: exact match first, else the longest prefix.

    Patterns are plain strings, as in Asynq: ``polling:`` takes every type that
    begins so. A mux is itself a handler and may be nested. Middleware wraps the
    mux as a whole, the first one used outermost, unknown types included.
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._by_length: list[tuple[str, Handler]] = []
        self._enter: HandlerFunction = self._route
        self._middleware: list[Middleware] = []
        self._find = lru_cache(_TYPES_KNOWN)(self._search)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Registered patterns, sorted."""
        return tuple(sorted(self._handlers))

    def handle(self, pattern: str, handler: Handler | HandlerFunction) -> None:
        """Register ``handler`` for ``pattern``.

        Raises:
            HandlerPatternError: the pattern is blank or was registered before.

        """
        if not pattern.strip():
            raise HandlerPatternError("任务类型模式不能为空")
        if pattern in self._handlers:
            raise HandlerPatternError(f"任务类型模式 {pattern!r} 重复注册")
        chosen = FunctionHandler(handler) if callable(handler) else handler
        self._handlers[pattern] = chosen
        self._by_length.append((pattern, chosen))
        self._by_length.sort(key=lambda entry: len(entry[0]), reverse=True)
        self._find.cache_clear()

    def use(self, *middleware: Middleware) -> None:
        """Wrap every handler of this mux; earlier middleware runs outside later middleware."""
        self._middleware.extend(middleware)
        entry: Handler = FunctionHandler(self._route)
        for wrap in reversed(self._middleware):
            entry = wrap(entry)
        self._enter = entry.process_task

    def find_handler(self, task_type: str) -> Handler | None:
        """Return the handler that would process ``task_type``, without middleware."""
        return self._find(task_type)

    async def process_task(self, task: ProcessingTask) -> None:
        """Route ``task`` through the middleware to its handler.

        Raises:
            UnknownTaskTypeError: no pattern fits the task's type.

        """
        await self._enter(task)

    async def _route(self, task: ProcessingTask) -> None:
        handler = self._find(task.type)
        if handler is None:
            raise UnknownTaskTypeError(task.type)
        await handler.process_task(task)

    def _search(self, task_type: str) -> Handler | None:
        exact = self._handlers.get(task_type)
        if exact is not None:
            return exact
        return next((handler for prefix, handler in self._by_length if task_type.startswith(prefix)), None)
