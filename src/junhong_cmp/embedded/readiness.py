"""Waiting until a child process answers, and giving up as soon as it has died."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.errors import DependencyUnavailableError

_PROBE_INTERVAL_S: Final = 0.01
_LOG_LINES: Final = 8


async def wait_ready(
    process: ChildProcess, probe: Callable[[], Awaitable[bool]], *, title: str, limit: timedelta
) -> None:
    """Return once ``probe`` says True.

    Raises:
        DependencyUnavailableError: the process ended first or the limit passed; the text ends with its log.

    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit.total_seconds()
    while True:
        if not process.running:
            raise DependencyUnavailableError(
                _failure(process, f"{title} 启动失败（退出码 {process.exit_code}）")
            )
        if await probe():
            return
        if loop.time() > deadline:
            raise DependencyUnavailableError(
                _failure(process, f"{title} 在 {limit.total_seconds():g} 秒内没有就绪")
            )
        await asyncio.sleep(_PROBE_INTERVAL_S)


def _failure(process: ChildProcess, headline: str) -> str:
    tail = process.log_tail(_LOG_LINES)
    return f"{headline}，日志 {process.spec.log_path}" + (f"：\n{tail}" if tail else "")
