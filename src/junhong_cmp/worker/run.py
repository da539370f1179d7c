"""One worker process from its settings to its exit code."""

import asyncio
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

import structlog

from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.config import Settings
from junhong_cmp.errors import ConfigError, CriticalLoopError, ExitCode, JunhongError
from junhong_cmp.lifecycle import ModuleGroup
from junhong_cmp.worker.bootstrap import BootstrapWorker
from junhong_cmp.worker.exit_guard import ExitGuard
from junhong_cmp.worker.foreign_lease import refuse_foreign_lease
from junhong_cmp.worker.heap import settle_heap
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.modules import WorkerModules
from junhong_cmp.worker.report import StartReport

log = structlog.stdlib.get_logger(__name__)

START_ABORT_LIMIT: Final = timedelta(seconds=1.6)
"""How long a start that was told to stop may take to undo itself."""
STOP_MARGIN: Final = timedelta(seconds=2)
"""How much longer than the grace period a whole stop may take."""
SWITCH_INTERVAL: Final = timedelta(milliseconds=1)
"""How long a thread that looks into a file or writes one may hold the event loop up; the default is 5 ms."""

SHARED_LOOPS: Final = ("polling:clock", "polling:config", "polling:stats")
"""Names of the background tasks that every role runs besides its modules."""


class StopSource(Protocol):
    """Who tells the worker to stop: in a process, the signals."""

    def listen(self, on_stop: Callable[[signal.Signals], None]) -> None:
        """Tell ``on_stop`` of the first signal from now on."""
        ...

    def finish(self) -> None:
        """The worker has stopped; a signal changes nothing any more."""
        ...


def run_worker(settings: Settings, stop_source: StopSource) -> int:
    """Run a worker until it is told to stop or cannot go on; return the exit code."""
    guard = ExitGuard()
    sys.setswitchinterval(SWITCH_INTERVAL.total_seconds())
    settle_heap()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            code = runner.run(WorkerRun(settings, stop_source, guard).main())
        except Exception:  # a fault of the program itself: told with its traceback, and the process ends
            log.exception("Worker 意外终止")
            code = ExitCode.CRITICAL_LOOP_DIED
        # Closing the loop waits for its threads; one may hang in a name look-up.
        guard.arm(STOP_MARGIN, code)
    return int(code)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - not available on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


class WorkerRun:
    """A worker run starts the modules of its role, waits for a reason to stop, and stops what started."""

    def __init__(
        self,
        settings: Settings,
        stop_source: StopSource,
        guard: ExitGuard,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._stop_source = stop_source
        self._guard = guard
        self._clock = clock or SystemClock()
        self._bootstrap = BootstrapWorker(settings, self._clock)
        self._modules: WorkerModules | None = None
        self._group = ModuleGroup(())
        self._stop = asyncio.Event()
        self._shared_loops = [LoopWatch(name, self._fail) for name in SHARED_LOOPS]
        self._failure: CriticalLoopError | None = None
        self._ready = False

    async def main(self) -> ExitCode:
        """Live one life; return the exit code."""
        loop = asyncio.get_running_loop()
        self._stop_source.listen(lambda number: self._receive(loop, number))
        try:
            code = await self._live()
        finally:
            stopped_well = await self._close()
            self._stop_source.finish()
        return code if stopped_well or code is not ExitCode.CLEAN else ExitCode.CRITICAL_LOOP_DIED

    async def _live(self) -> ExitCode:
        start = asyncio.create_task(self._start(), name="worker-start")
        stop = asyncio.create_task(self._stop.wait(), name="worker-stop")
        await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            start.cancel()
            await asyncio.wait({start})
        if start.cancelled() and self._failure is None:
            stop.cancel()
            log.info("启动未完成即被要求退出")
            return ExitCode.CLEAN
        error = None if start.cancelled() else start.exception()
        if error is not None:
            stop.cancel()
            return _failed_start(error)
        await stop
        if self._failure is not None:
            log.error("关键循环已终止，进程退出", reason=str(self._failure))
            return self._failure.exit_code
        return ExitCode.CLEAN

    async def _start(self) -> None:
        services = await self._bootstrap.open()
        for watch in self._shared_loops:
            watch.begin()
        await refuse_foreign_lease(services.redis, self._settings)
        self._modules = WorkerModules(services, self._settings, on_failure=self._fail)
        self._group = ModuleGroup(self._modules.enabled())
        await self._group.start()
        scheduling = await self._modules.scheduling()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._modules.pause_fetching)
        self._ready = True
        StartReport(
            role=self._settings.worker.role,
            instance_name=self._settings.worker.instance_name,
            started=self._group.started,
            missing=services.missing,
            scheduling=scheduling,
        ).write()

    def _receive(self, loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
        """Take a signal: in its handler, so that even a blocked loop ends in time."""
        limit = self._settings.shutdown_grace + STOP_MARGIN if self._ready else START_ABORT_LIMIT
        self._guard.arm(limit, ExitCode.CRITICAL_LOOP_DIED if self._ready else ExitCode.CLEAN)
        loop.call_soon_threadsafe(self._announce_stop, number)

    def _announce_stop(self, number: signal.Signals) -> None:
        log.info(
            "收到退出信号，开始优雅关闭",
            signal=number.name,
            in_flight=self._modules.in_flight if self._modules is not None else 0,
            grace_s=self._settings.shutdown_grace.total_seconds(),
        )
        self._stop.set()

    def _fail(self, error: CriticalLoopError) -> None:
        """Take the death of a loop that must not die; the first one counts."""
        if self._failure is None and not self._stop.is_set():
            self._failure = error
            self._guard.arm(self._settings.shutdown_grace + STOP_MARGIN, error.exit_code)
            self._stop.set()

    async def _close(self) -> bool:
        began = self._clock.monotonic()
        stopped_well = True
        for watch in self._shared_loops:
            watch.end()
        try:
            await self._group.stop()
        except* Exception:  # noqa: BLE001 - each was logged with its module; closing must go on
            stopped_well = False
        await self._bootstrap.close()
        log.info("优雅关闭完成", elapsed_s=round(self._clock.monotonic() - began, 2))
        return stopped_well


def _failed_start(error: BaseException) -> ExitCode:
    if isinstance(error, ConfigError):
        for problem in error.problems:
            log.error("配置错误", problem=problem)
        return error.exit_code
    if isinstance(error, JunhongError):
        log.error("Worker 未能启动", reason=str(error))
        return error.exit_code
    if isinstance(error, AsynqError):
        log.error("Worker 未能启动", reason=str(error))
        return ExitCode.CONFIGURATION
    log.error("Worker 未能启动", exc_info=error)
    return ExitCode.CRITICAL_LOOP_DIED
