"""A run of ``junhong up``: watch the stage it brought up, show the polling, say how it ended."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import typer
from redis.exceptions import RedisError

from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.cli.up_figures import Figures
from junhong_cmp.cli.up_screen import Progress, Screen, open_screen
from junhong_cmp.cli.up_stage import Scene, UpOptions, UpStage
from junhong_cmp.cli.up_summary import ExitReason, UpSummary, summarise
from junhong_cmp.cli.up_watch import ChildWatch, death_error
from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.errors import CriticalLoopError

_REFRESH_S: Final = 1.0
_IMPORT_REFRESH_S: Final = 0.2
_FIRST_POLL_LIMIT_S: Final = 120.0
_DEATH_NOTICE_S: Final = 1.0
_SERVER_GONE: Final = (OSError, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError)


async def run_up(options: UpOptions, signals: StopSignals, *, as_json: bool) -> None:
    """Run until the time is over or a signal comes, then print the summary.

    Raises:
        JunhongError: something could not be started, or a child process died; everything was taken down.

    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_signal(_number: object) -> None:
        loop.call_soon_threadsafe(stop.set)

    signals.listen(on_signal)
    screen = open_screen(as_json=as_json)
    run = UpRun(options, screen)
    try:
        summary = await run.run(stop)
    finally:
        signals.finish()
        screen.close()
    typer.echo(summary.as_json() if as_json else summary.as_text())
    if run.dead is not None:
        raise death_error(run.dead)


class UpRun:
    """An up run takes one ``junhong up`` from its first process to its summary.

    It ends when its time is over, when it is told to stop, or when a child process dies (``dead``).
    """

    def __init__(self, options: UpOptions, screen: Screen) -> None:
        self.dead: ChildProcess | None = None
        self._began = time.monotonic()
        self._options = options
        self._screen = screen
        self._stage = UpStage(options)
        self._watch = ChildWatch()
        self._scene: Scene | None = None
        self._figures: Figures | None = None
        self._polling_since: float | None = None

    async def run(self, stop: asyncio.Event) -> UpSummary:
        """Bring up, watch, take down.

        Raises:
            JunhongError: something could not be brought up; what had been was taken down.

        """
        self._stage.reserve()
        work = asyncio.create_task(self._work())
        asked = asyncio.create_task(stop.wait())
        died = asyncio.create_task(self._watch.first_death())
        try:
            await asyncio.wait({work, asked, died}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and isinstance(work.exception(), _SERVER_GONE):  # often only a dead server's echo
                await asyncio.wait({died}, timeout=_DEATH_NOTICE_S)
            self.dead = died.result() if died.done() else None
            reason = self._reason(work)
        finally:
            for part in (work, asked, died):
                part.cancel()
            await asyncio.gather(work, asked, died, return_exceptions=True)
            ended = time.monotonic()
            await self._take_down()
        if reason is ExitReason.FOR_ELAPSED:
            work.result()  # raises what went wrong, if anything did
        return summarise(
            None if self._scene is None else self._scene.imports.counts,
            self._figures,
            reason=reason,
            polling_for=timedelta(seconds=ended - (self._polling_since or ended)),
            data_dir=self._stage.folder.root,
        )

    def _reason(self, work: asyncio.Task[None]) -> ExitReason:
        if self.dead is not None:
            return ExitReason.PROCESS_DIED
        return ExitReason.FOR_ELAPSED if work.done() else ExitReason.SIGNAL

    async def _work(self) -> None:
        self._screen.say("正在启动内置 Redis、PostgreSQL、模拟网关与 Worker …")
        scene = self._scene = await self._stage.bring_up()
        self._watch.add(scene.processes)
        self._screen.report(_report(scene, self._stage))
        await self._wait_for_import(scene)
        await self._show_polling(scene)

    async def _wait_for_import(self, scene: Scene) -> None:
        imports = scene.imports
        if imports.done:
            self._screen.say(f"卡文件 {imports.files} 已在先前导入，从上次结束处继续")
        shown = time.monotonic()
        while not imports.done and imports.failed is None:
            await asyncio.sleep(_IMPORT_REFRESH_S)
            await imports.refresh(scene.pool)
            if time.monotonic() - shown >= _REFRESH_S:
                shown = time.monotonic()
                self._show(scene)
        if (task := imports.failed) is not None:
            raise CriticalLoopError(f"卡文件 {task.file_name} 导入失败：{task.error or '已取消'}")

    async def _show_polling(self, scene: Scene) -> None:
        """Show the figures each second until ``run_for`` is over, counted from the first poll."""
        began = tick = time.monotonic()
        ends: float | None = None
        while ends is None or tick < ends:
            await asyncio.sleep(max(0.0, tick - time.monotonic()))
            figures = self._figures = await scene.figures.read()
            if figures.claims_held is not None:
                began = time.monotonic()  # the wait for the first poll begins when one may come
            if self._polling_since is None:
                self._polling_since = self._first_poll(figures, began)
            since = self._polling_since
            self._show(scene, figures)
            if since is not None and self._options.run_for is not None:
                ends = since + self._options.run_for.total_seconds()
            tick = max(tick + _REFRESH_S, time.monotonic())
        await asyncio.sleep(max(0.0, ends - time.monotonic()))

    def _first_poll(self, figures: Figures, began: float) -> float | None:
        now = time.monotonic()
        if figures.polled:
            return now
        if now - began > _FIRST_POLL_LIMIT_S:
            log = self._stage.folder.logs / "worker.log"
            raise CriticalLoopError(f"导入完成 {_FIRST_POLL_LIMIT_S:g} 秒后仍没有轮询，请查看日志 {log}")
        return None

    def _show(self, scene: Scene, figures: Figures | None = None) -> None:
        elapsed = timedelta(seconds=time.monotonic() - self._began)
        self._screen.show(Progress(elapsed=elapsed, imports=scene.imports.counts, figures=figures))

    async def _take_down(self) -> None:
        """Stop the worker, read what it reported last, then stop the rest."""
        self._watch.close()
        self._screen.say("正在停止 …")
        polled_until = datetime.now(UTC)
        try:
            await self._stage.stop_worker()
            if self._scene is not None:
                self._figures = await self._scene.figures.read(polled_until)
        except _SERVER_GONE:  # a dead server has no last figures; those shown last stand
            pass
        finally:
            await self._stage.take_down()


def _report(scene: Scene, stage: UpStage) -> list[tuple[str, str]]:
    pids = {process.spec.name: f"（进程 {process.pid}）" for process in scene.processes}
    cluster = stage.folder.root / "postgres"
    elsewhere = [("数据库目录", str(cluster.readlink()))] if cluster.is_symlink() else []
    return [
        ("数据目录", str(stage.folder.root)),
        *elsewhere,
        ("Redis", scene.links.redis_url + pids["redis"]),
        ("PostgreSQL", scene.links.postgres_dsn + pids["postgres"]),
        *((each.title, each.url + pids[each.process.spec.name]) for each in scene.simulators),
        ("对象存储", scene.links.storage_url),
        ("Worker", "角色 all" + pids["worker"]),
        ("卡文件", scene.imports.files),
        ("日志", str(stage.folder.logs)),
    ]
