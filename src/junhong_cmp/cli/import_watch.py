"""Waiting for an import to end, and showing how far it is."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import typer

from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import is_outage
from junhong_cmp.errors import DependencyUnavailableError
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import

_LOOK_EVERY: Final = timedelta(milliseconds=200)
_HINT_AFTER: Final = timedelta(seconds=10)
_RESULT_WITHIN: Final = timedelta(seconds=10)


async def watch(pool: Pool, task: ImportTask, show: Callable[[ImportTask], None]) -> ImportTask:
    """Return the import once it is final; an outage of the database is waited out.

    The worker stores the result file of a cancelled import after its end, and is given a while for that.
    """
    loop = asyncio.get_running_loop()
    hint_at = loop.time() + _HINT_AFTER.total_seconds()
    told: str | None = None
    while not task.status.is_final:
        show(task)
        if task.waits_for not in {None, told}:
            typer.echo(f"导入暂停：{task.waits_for}；条件恢复后自动继续", err=True)
            told = task.waits_for
        elif task.status is ImportStatus.PENDING and told is None and loop.time() >= hint_at:
            typer.echo(
                "尚无 Worker 处理此导入：请确认有 Worker 在运行；可按 Ctrl-C 离开，导入不会丢失", err=True
            )
            hint_at = float("inf")
        await asyncio.sleep(_LOOK_EVERY.total_seconds())
        with contextlib.suppress(_Outage):
            task = await _look_again(pool, task)
    show(task)
    return await _with_result(pool, task)


async def _with_result(pool: Pool, task: ImportTask) -> ImportTask:
    loop = asyncio.get_running_loop()
    until = loop.time() + _RESULT_WITHIN.total_seconds()
    while task.awaits_result and loop.time() < until:
        await asyncio.sleep(_LOOK_EVERY.total_seconds())
        with contextlib.suppress(_Outage):
            task = await _look_again(pool, task)
    return task


async def _look_again(pool: Pool, task: ImportTask) -> ImportTask:
    try:
        current = await find_import(pool, task.id)
    except Exception as error:
        if is_outage(error):
            raise _Outage from error
        raise
    if current is None:
        raise DependencyUnavailableError(f"导入 {task.id} 已被另一次提交取代")
    return current


class _Outage(Exception):  # noqa: N818 - a passing state, waited out
    """The database can't be asked now."""
