"""Real ``junhong`` processes for tests: start them, read their log, signal them, await their end."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "junhong_cmp")
ENTRY = "\nimport sys\nfrom junhong_cmp.__main__ import main\nsys.exit(main())"
STARTED = "Worker 启动"
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")

Record = dict[str, Any]


def environment(**variables: str) -> dict[str, str]:
    """A clean environment for a child: nothing named JUNHONG_* but what the test says."""
    kept = {name: value for name, value in os.environ.items() if name in INHERITED}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT / "src"), **variables}


class WorkerProcess:
    """A worker process runs ``junhong worker`` (or another command) with its JSON log collected.

    ::

        async with WorkerProcess({"JUNHONG_WORKER_ROLE": "leader", ...}) as worker:
            record = await worker.wait_for("Worker 启动")
            worker.signal(signal.SIGTERM)
            assert await worker.wait_exit() == 0

    ``prelude`` is Python run in the process before the program, to plant a fault.
    Leaving the block kills what still runs, so no test leaves a process behind.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        arguments: Sequence[str] = ("worker",),
        cwd: Path | None = None,
        prelude: str = "",
    ) -> None:
        self.records: list[Record] = []
        self.raw: list[str] = []
        self.output = ""
        self._env = environment(**{"JUNHONG_LOG_FORMAT": "json", **env})
        self._arguments = tuple(arguments)
        self._cwd = cwd
        self._prelude = prelude
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._grown = asyncio.Condition()
        self._log_ended = False

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def returncode(self) -> int | None:
        return self._running.returncode

    @property
    def log_text(self) -> str:
        """Everything written to standard error so far, as it was written."""
        return "\n".join(self.raw)

    async def start(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *self._arguments,
            env=self._env,
            cwd=self._cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        self._readers = [asyncio.create_task(self._read_log()), asyncio.create_task(self._read_output())]
        return self

    def find(self, sentence: str, **fields: Any) -> list[Record]:
        """Records whose event begins with ``sentence`` and that carry ``fields``."""
        return [
            record
            for record in self.records
            if str(record.get("event", "")).startswith(sentence)
            and all(record.get(name) == value for name, value in fields.items())
        ]

    async def wait_for(
        self,
        sentence: str,
        *,
        timeout: float = 20.0,  # noqa: ASYNC109 - the failure must name what was waited for
        count: int = 1,
        **fields: Any,
    ) -> Record:
        """Wait until ``count`` records begin with ``sentence``; return the last of them."""

        def arrived() -> bool:
            return len(self.find(sentence, **fields)) >= count or self._log_ended

        try:
            async with asyncio.timeout(timeout), self._grown:
                await self._grown.wait_for(arrived)
        except TimeoutError:
            raise AssertionError(
                f"no record {sentence!r} within {timeout} s; log:\n{self.log_text}"
            ) from None
        found = self.find(sentence, **fields)
        assert len(found) >= count, f"the process ended without {sentence!r}; log:\n{self.log_text}"
        return found[count - 1]

    async def wait_started(self, *, timeout: float = 30.0) -> Record:  # noqa: ASYNC109 - as above
        """Wait for the start-up record; return it."""
        return await self.wait_for(STARTED, timeout=timeout)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this process; an ended one is left alone."""
        with contextlib.suppress(ProcessLookupError):
            self._running.send_signal(number)

    async def wait_exit(self, *, timeout: float = 20.0) -> int:  # noqa: ASYNC109 - as above
        """Wait for the end; return the exit code (negative: killed by that signal)."""
        try:
            async with asyncio.timeout(timeout):
                code = await self._running.wait()
                await asyncio.gather(*self._readers)
        except TimeoutError:
            raise AssertionError(f"still running after {timeout} s; log:\n{self.log_text}") from None
        return code

    async def stop(self, *, timeout: float = 20.0) -> int:  # noqa: ASYNC109 - as above
        """Ask for a graceful stop; return the exit code."""
        self.signal(signal.SIGTERM)
        return await self.wait_exit(timeout=timeout)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            await self._process.wait()
        await asyncio.gather(*self._readers)

    @property
    def _command(self) -> tuple[str, ...]:
        return (sys.executable, "-c", self._prelude + ENTRY) if self._prelude else COMMAND

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "not started"
        return self._process

    async def _read_log(self) -> None:
        stream = self._running.stderr
        assert stream is not None
        try:
            async for line in stream:
                await self._take(line.decode("utf-8", "backslashreplace").rstrip("\n"))
        finally:
            self._log_ended = True
            async with self._grown:
                self._grown.notify_all()

    async def _take(self, text: str) -> None:
        async with self._grown:
            self.raw.append(text)
            with contextlib.suppress(orjson.JSONDecodeError):
                record = orjson.loads(text)
                if isinstance(record, dict):
                    self.records.append(record)
            self._grown.notify_all()

    async def _read_output(self) -> None:
        stream = self._running.stdout
        assert stream is not None
        self.output = (await stream.read()).decode("utf-8", "backslashreplace")
