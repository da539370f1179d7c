"""The Go programs of these tests: built once a run, started against the test's Redis."""

import asyncio
import fcntl
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from tests.redis_servers import free_ports
from tests.waiting import wait_until

_SOURCE = Path(__file__).parent / "go"
_PACKAGES = (".", "github.com/hibiken/asynq/tools/asynq", "github.com/hibiken/asynqmon/cmd/asynqmon")
_BUILD_LIMIT_S = 600
_RUN_LIMIT_S = 90
_STOP_LIMIT_S = 30


@dataclass(frozen=True, slots=True)
class Programs:
    """Our own program, the command line and the web UI, all of one build."""

    interop: Path
    asynq: Path
    asynqmon: Path


def build(folder: Path) -> Programs:
    """Build into ``folder`` unless it was done: the processes of one test run share it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            command = ["go", "build", "-o", f"{folder}/", *_PACKAGES]
            environment = {**os.environ, "GOFLAGS": "-mod=readonly"}
            subprocess.run(command, cwd=_SOURCE, check=True, timeout=_BUILD_LIMIT_S, env=environment)
            (folder / "built").touch()
    return Programs(folder / "interop", folder / "asynq", folder / "asynqmon")


async def run(*command: str | Path) -> str:
    """Run a program to its end and return what it printed; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_RUN_LIMIT_S):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@asynccontextmanager
async def running(*command: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program beside the test; it is asked to end, and must end well unless the test killed it."""
    process = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    except BaseException:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        raise
    if process.returncode is None:
        process.terminate()
        async with asyncio.timeout(_STOP_LIMIT_S):
            await process.communicate()
        assert process.returncode == 0, f"{command[0]} ended with {process.returncode}"


class GoAsynq:
    """The real Asynq, driven by our own program against the test's Redis."""

    def __init__(self, programs: Programs, socket: str) -> None:
        self._program = programs.interop
        self._socket = socket

    async def run(self, command: str, *arguments: str) -> Any:
        return json.loads(await run(self._program, command, self._socket, *arguments))

    def running(
        self, command: str, *arguments: str
    ) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
        return running(self._program, command, self._socket, *arguments)


class AsynqTool:
    """The command line ``asynq`` as an operator types it."""

    def __init__(self, programs: Programs, socket: str) -> None:
        self._program = programs.asynq
        self._socket = socket

    async def run(self, *arguments: str) -> str:
        # An address that is a path is taken for a unix socket by the Redis client underneath.
        return await run(self._program, "--uri", self._socket, *arguments)

    async def table(self, *arguments: str) -> list[dict[str, str]]:
        """Return the rows of a printed table by column; columns are at least two blanks apart."""
        lines = [line for line in (await self.run(*arguments)).splitlines() if line.strip()]
        rule = next(number for number, line in enumerate(lines) if set(line.strip()) <= {"-", " "})
        names = split_columns(lines[rule - 1])
        return [dict(zip(names, split_columns(line), strict=True)) for line in lines[rule + 1 :]]


def split_columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


class Asynqmon:
    """The web UI, asked through its REST interface."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address = address
        self._session = session

    async def get(self, path: str) -> Any:
        async with self._session.get(f"{self._address}/api/{path}") as answer:
            answer.raise_for_status()
            return await answer.json(content_type=None)  # it says text/plain

    async def send(self, method: str, path: str) -> None:
        async with self._session.request(method, f"{self._address}/api/{path}") as answer:
            answer.raise_for_status()

    async def answers(self) -> bool:
        try:
            await self.get("queues")
        except aiohttp.ClientConnectionError:
            return False
        return True


@asynccontextmanager
async def asynqmon_running(programs: Programs, socket: str) -> AsyncIterator[Asynqmon]:
    (port,) = free_ports(1)
    command = (programs.asynqmon, "--port", str(port), "--redis-url", f"redis-socket://{socket}?db=0")
    process = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.DEVNULL)
    try:
        async with aiohttp.ClientSession() as session:
            web = Asynqmon(f"http://127.0.0.1:{port}", session)
            await wait_until(web.answers, timeout=20, description="asynqmon answers")
            yield web
    finally:
        process.kill()
        await process.wait()
