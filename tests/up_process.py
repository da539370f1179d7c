"""``junhong up`` as a process, for tests that run it as its users do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from tests.waiting import wait_until
from tests.worker_process import COMMAND, environment


class UpProcess:
    """One ``junhong up`` with what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process, data_dir: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.out = ""
        self.err = ""
        self._readers = [asyncio.create_task(self._read(name)) for name in ("out", "err")]

    async def _read(self, name: str) -> None:
        stream = self.process.stdout if name == "out" else self.process.stderr
        assert stream is not None
        while chunk := await stream.readline():
            setattr(self, name, getattr(self, name) + chunk.decode())

    async def finish(self, limit: float = 60) -> int:
        async with asyncio.timeout(limit):
            await asyncio.gather(*self._readers)
            return await self.process.wait()

    async def says(self, text: str, limit: float = 60) -> None:
        await wait_until(
            lambda: text in self.out + self.err or self.process.returncode is not None,
            timeout=limit,
            description=f"up says {text}",
        )
        assert text in self.out + self.err, self.err

    async def polls(self) -> None:
        await self.says("滞后 p95")

    def pids(self) -> dict[str, int]:
        """Pids of the children that run now, by name."""
        records = (self.data_dir / "pids").glob("*.pid")
        return {record.stem: json.loads(record.read_text())["pid"] for record in records}

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


@asynccontextmanager
async def up(data_dir: Path, *arguments: str) -> AsyncIterator[UpProcess]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "up",
        "--data-dir",
        str(data_dir),
        *arguments,
        env=environment(),
        cwd="/",  # no `.env` there
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    run = UpProcess(process, data_dir)
    try:
        yield run
    finally:
        if process.returncode is None:
            process.kill()
        await run.finish()
        await wait_until(lambda: not left_of(data_dir), timeout=30, description="nothing of the run is left")


def left_of(data_dir: Path) -> list[str]:
    """Processes that work in the data folder, by their arguments or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                known = [*process.cmdline(), *process.environ().values()]
                found += [str(process.pid)] if any(str(data_dir) in text for text in known) else []
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
