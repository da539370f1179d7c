"""The parent's side of the process that reads a card file: started, fed, listened to, and always ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import IO, Any, Final

import structlog

from junhong_cmp.errors import system_reason
from junhong_cmp.imports.errors import FileRefusedError, ParserNotStartedError
from junhong_cmp.imports.parser_frames import LENGTH, MAX_FRAME_BYTES, FrameKind, decode_frame
from junhong_cmp.imports.parser_order import OUT_OF_MEMORY, ParserOrder

log = structlog.stdlib.get_logger(__name__)

_TOO_LARGE: Final = "文件解析超出内存限制，已中止；请拆分或另存为 CSV 后再导入"
_TOO_SLOW: Final = "文件解析超时，已中止；请拆分或另存为 CSV 后再导入"
_CRASHED: Final = "文件解析进程异常退出：文件可能已损坏；请重新导出，或另存为 CSV 后再导入"
_KILLED: Final = "文件解析进程被系统终止，可能是内存不足；请拆分或另存为 CSV 后再导入"
_REASONS: Final[Mapping[int, str]] = {
    signal.SIGABRT: _TOO_LARGE,  # how calamine ends when it gets no memory
    signal.SIGXCPU: _TOO_SLOW,
    signal.SIGKILL: _KILLED,
}
_PASSED_ON: Final = frozenset({
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV",
})  # fmt: skip
"""What Python needs of the environment. The rest may hold secrets, of ours or of the storage's client."""
_READ_AHEAD: Final = 4096
"""Bytes read before they are asked for; the child is to work for whoever waits, and not ahead of it."""
_USER_TIME: Final = 11
"""Where /proc/PID/stat has it, counted behind the name of the program; the system's time follows."""


class ParserProcess:
    """A parser process gives out the frames of the child that reads one file, and feeds it a text."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        order: ParserOrder,
        pieces: AsyncGenerator[bytes, None] | None = None,
    ) -> None:
        self._process = process
        # A text comes from storage, and how long that takes says nothing about the child.
        self._silence = None if pieces else order.parser_limits.silence.total_seconds()
        self._ticks_used = 0  # as far as was looked: only who is silent is looked at
        self._feeding = None if pieces is None else asyncio.create_task(self._feed(pieces))

    async def frames(self) -> AsyncGenerator[tuple[FrameKind, Any], None]:
        """Yield frames until the child says that it is done.

        Raises:
            FileRefusedError: the child refused the file, or did not survive it.
            Exception: whatever the pieces raised.

        """
        while True:
            kind, content = await self._next_frame()
            if kind is FrameKind.END:
                return
            if kind is FrameKind.REFUSED:
                raise FileRefusedError(str(content))
            if kind is FrameKind.FAILED:
                log.error("文件解析出错", place=content)
                raise FileRefusedError(_CRASHED)
            yield kind, content

    async def end(self) -> None:
        """Kill the child if it still runs, and reap it."""
        if self._process.returncode is None:
            self._process.kill()
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.wait([self._feeding])
        if self._process.stdin is not None:
            self._process.stdin.close()
        # Reading on lets the pipe close; a full one would keep its transport open.
        await self._process.communicate()

    async def _feed(self, pieces: AsyncGenerator[bytes, None]) -> None:
        """Write a text to the child; when its pieces fail, the child is ended, since no end will come."""
        into = self._process.stdin
        if into is None:
            raise RuntimeError
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if not await _hand_over(piece, into):
                        break  # the child has ended, and its last frame or its exit code says why
        except Exception:  # of any kind: the child waits for no more, and it goes on to the reader
            self._process.kill()
            raise
        finally:
            into.close()

    async def _next_frame(self) -> tuple[FrameKind, Any]:
        out = self._process.stdout
        if out is None:
            raise RuntimeError
        try:
            (length,) = LENGTH.unpack(await self._read(out, LENGTH.size))
            if length > MAX_FRAME_BYTES:
                raise FileRefusedError(_CRASHED)
            return decode_frame(await self._read(out, length))
        except TimeoutError as error:
            log.warning("文件解析进程没有进展，已中止", pid=self._process.pid)
            raise FileRefusedError(_TOO_SLOW) from error
        except asyncio.IncompleteReadError as error:
            if self._feeding is not None and self._feeding.done():
                self._feeding.result()
            raise FileRefusedError(await self._explain_end()) from error
        except ValueError as error:
            raise FileRefusedError(_CRASHED) from error

    async def _read(self, out: asyncio.StreamReader, size: int) -> bytes:
        """Read from the child; silent but at work it is let be, since its processor time is limited."""
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    return await out.readexactly(size)
            except TimeoutError:
                before, self._ticks_used = self._ticks_used, _processor_ticks(self._process.pid)
                if self._ticks_used <= before:
                    raise

    async def _explain_end(self) -> str:
        code = await self._process.wait()
        log.warning("文件解析进程异常退出", pid=self._process.pid, exit_code=code)
        if code == OUT_OF_MEMORY:
            return _TOO_LARGE
        return _REASONS.get(-code, _CRASHED)


async def _hand_over(piece: bytes, into: asyncio.StreamWriter) -> bool:
    """Write a piece; False when nobody reads there any more. What a storage raises may look the same."""
    if into.is_closing():
        return False
    try:
        into.write(piece)
        await into.drain()
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _processor_ticks(pid: int) -> int:
    """Return how much processor time a process has had, 0 where that can't be told."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0
    return int(fields[_USER_TIME]) + int(fields[_USER_TIME + 1])


@asynccontextmanager
async def start_parser(
    source: IO[bytes] | AsyncGenerator[bytes, None], order: ParserOrder
) -> AsyncGenerator[ParserProcess, None]:
    """Run the child that reads ``source`` for the time of the context: a file, or the pieces of a text.

    Raises:
        ParserNotStartedError: the system lets no process be started.

    """
    pieces = None
    stdin: IO[bytes] | int = asyncio.subprocess.PIPE
    if isinstance(source, AsyncGenerator):
        pieces = source
    else:
        source.seek(0)
        stdin = source
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-X",
            "utf8",  # whatever the locale: names in the order are Chinese
            "-m",
            "junhong_cmp.imports.parser_child",
            order.encode().encode(),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name in _PASSED_ON},
            start_new_session=True,
            limit=_READ_AHEAD,
        )
    except OSError as error:  # too many processes or open files, no memory
        if pieces is not None:
            await pieces.aclose()
        raise ParserNotStartedError(f"文件解析进程无法启动：{system_reason(error)}") from error
    parser = ParserProcess(process, order, pieces)
    try:
        yield parser
    finally:
        await parser.end()
