"""The parent's side of the process that parses a workbook: started, listened to, and always ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any, Final

import structlog

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.workbook_frames import LENGTH, MAX_FRAME_BYTES, FrameKind, decode_frame
from junhong_cmp.imports.workbook_order import OUT_OF_MEMORY, WorkbookOrder

log = structlog.stdlib.get_logger(__name__)

_TOO_LARGE: Final = "工作簿解析超出内存限制，已中止；请拆分或另存为 CSV 后再导入"
_TOO_SLOW: Final = "工作簿解析超时，已中止；请拆分或另存为 CSV 后再导入"
_CRASHED: Final = "工作簿解析进程异常退出：文件可能已损坏；请用 Excel 打开并另存为 .xlsx 或 CSV 后再导入"
_KILLED: Final = "工作簿解析进程被系统终止，可能是内存不足；请拆分或另存为 CSV 后再导入"
_REASONS: Final[Mapping[int, str]] = {
    signal.SIGABRT: _TOO_LARGE,  # how calamine ends when it gets no memory
    signal.SIGXCPU: _TOO_SLOW,
    signal.SIGKILL: _KILLED,
}
_SECRETS: Final = "JUNHONG_"


class WorkbookProcess:
    """A workbook process gives out the frames of the child that reads one file."""

    def __init__(self, process: asyncio.subprocess.Process, order: WorkbookOrder) -> None:
        self._process = process
        self._order = order

    async def frames(self) -> AsyncGenerator[tuple[FrameKind, Any], None]:
        """Yield frames until the child says that it is done.

        Raises:
            FileRefusedError: the child refused the file, or did not survive it.

        """
        while True:
            kind, content = await self._next_frame()
            if kind is FrameKind.END:
                return
            if kind is FrameKind.REFUSED:
                raise FileRefusedError(str(content))
            if kind is FrameKind.FAILED:
                log.error("工作簿解析出错", place=content)
                raise FileRefusedError(_CRASHED)
            yield kind, content

    async def end(self) -> None:
        """Kill the child if it still runs, and reap it."""
        if self._process.returncode is None:
            self._process.kill()
        # Reading on lets the pipe close; a full one would keep its transport open.
        await self._process.communicate()

    async def _next_frame(self) -> tuple[FrameKind, Any]:
        out = self._process.stdout
        if out is None:
            raise RuntimeError
        try:
            async with asyncio.timeout(self._order.workbook_limits.silence.total_seconds()):
                (length,) = LENGTH.unpack(await out.readexactly(LENGTH.size))
                if length > MAX_FRAME_BYTES:
                    raise FileRefusedError(_CRASHED)
                return decode_frame(await out.readexactly(length))
        except TimeoutError as error:
            log.warning("工作簿解析进程没有进展，已中止", pid=self._process.pid)
            raise FileRefusedError(_TOO_SLOW) from error
        except asyncio.IncompleteReadError as error:
            raise FileRefusedError(await self._explain_end()) from error
        except ValueError as error:
            raise FileRefusedError(_CRASHED) from error

    async def _explain_end(self) -> str:
        code = await self._process.wait()
        log.warning("工作簿解析进程异常退出", pid=self._process.pid, exit_code=code)
        if code == OUT_OF_MEMORY:
            return _TOO_LARGE
        return _REASONS.get(-code, _CRASHED)


@asynccontextmanager
async def start_workbook_process(
    file: IO[bytes], order: WorkbookOrder
) -> AsyncGenerator[WorkbookProcess, None]:
    """Run the child that reads ``file`` (from its start) for the time of the context."""
    file.seek(0)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "junhong_cmp.imports.workbook_child",
        order.encode(),
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith(_SECRETS)},
        start_new_session=True,
    )
    child = WorkbookProcess(process, order)
    try:
        yield child
    finally:
        await child.end()
