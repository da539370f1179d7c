"""Start and stop of background modules: in order, by record, with roll-back."""

from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

log = structlog.stdlib.get_logger(__name__)


class Module(Protocol):
    """A background part of the process that can be started once and stopped once."""

    @property
    def name(self) -> str:
        """The module's name as it appears in logs, e.g. ``queue_server``."""
        ...

    async def start(self) -> None:
        """Return when the module is running; on error nothing of it is left running."""
        ...

    async def stop(self) -> None:
        """Return when the module has ended; called only after a successful start."""
        ...


class ModuleGroup:
    """A module group starts modules in order and stops, in reverse, only those that started."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._modules = tuple(modules)
        self._started: list[Module] = []

    @property
    def started(self) -> tuple[str, ...]:
        """Names of the modules that run now, in start order."""
        return tuple(module.name for module in self._started)

    async def start(self, *, on_started: Callable[[Module], None] | None = None) -> None:
        """Start every module; a failed or cancelled start stops those that had started."""
        for module in self._modules:
            try:
                await module.start()
            except BaseException:  # cancellation too: SIGTERM may come in the middle of a start
                log.warning("模块启动未完成，回滚已启动的模块", module=module.name, started=self.started)
                await self.stop()
                raise
            self._started.append(module)
            log.info("模块已启动", module=module.name)
            if on_started is not None:
                on_started(module)

    async def stop(self) -> None:
        """Stop what started, last first; one failing stop never keeps the others running.

        Raises:
            ExceptionGroup: after every module was asked to stop, with the errors of those that failed.

        """
        errors: list[Exception] = []
        while self._started:
            module = self._started.pop()
            try:
                await module.stop()
            except Exception as error:  # collected and raised below, after the rest has stopped
                log.exception("模块停止失败", module=module.name)
                errors.append(error)
            else:
                log.info("模块已停止", module=module.name)
        if errors:
            message = "部分模块停止失败"
            raise ExceptionGroup(message, errors)
