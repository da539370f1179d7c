"""Embedded Redis: a private Valkey on a unix socket."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from junhong_cmp.embedded.binaries import find_redis_program
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
from junhong_cmp.embedded.readiness import wait_ready

_START_LIMIT: Final = timedelta(seconds=30)  # an append-only file of some GB is replayed first
_STOP_LIMIT: Final = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisPlace:
    """Where an embedded Redis keeps its data, socket and log.

    Extra arguments and another program than the one found by itself are for tests.
    """

    data_folder: Path
    socket_path: Path
    log_path: Path
    pid_path: Path | None = None
    extra_arguments: tuple[str, ...] = ()
    program: Path | None = None


class EmbeddedRedis:
    """An embedded Redis runs Valkey for this process alone and keeps its data between starts.

    It listens on no port. Every write goes to an append-only file, synced each second, so that a killed run
    loses a second at most; memory is never evicted, because tasks and cards are not a cache.
    """

    def __init__(self, place: RedisPlace) -> None:
        self._place = place
        self._process: ChildProcess | None = None

    @property
    def url(self) -> str:
        """URL of database 0."""
        return f"unix://{self._place.socket_path}?db=0"

    @property
    def process(self) -> ChildProcess | None:
        """The child process of the latest start."""
        return self._process

    async def start(self) -> None:
        """Start the server and return when it answers.

        Raises:
            DependencyUnavailableError: no program for this platform, or it did not come up.

        """
        place = self._place
        place.data_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.socket_path.unlink(missing_ok=True)
        self._process = ChildProcess(
            ProcessSpec(
                name="redis",
                arguments=self._arguments(place.program or find_redis_program()),
                log_path=place.log_path,
                pid_path=place.pid_path,
                working_folder=place.data_folder,
            )
        )
        self._process.start()
        try:
            await wait_ready(self._process, self._answers, title="内置 Redis", limit=_START_LIMIT)
        except BaseException:  # a cancelled start leaves nothing running either
            await self.kill()
            raise

    async def stop(self) -> None:
        """Let the server write its data down and end."""
        if self._process is not None:
            await self._process.stop(_STOP_LIMIT)

    async def kill(self) -> None:
        """End the server at once, as a crash would."""
        if self._process is not None:
            await self._process.kill()

    async def restart(self) -> None:
        """Stop and start again with the data kept."""
        await self.stop()
        await self.start()

    def _arguments(self, program: Path) -> list[str]:
        place = self._place
        options = {
            "port": "0",
            "unixsocket": str(place.socket_path),
            "unixsocketperm": "700",
            "dir": str(place.data_folder),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "loglevel": "notice",
            "logfile": "",
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [str(program), *flags, *place.extra_arguments]

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._place.socket_path))
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return (await reader.readline()).startswith(b"+PONG")  # -LOADING while the file is replayed
        except OSError:
            return False
        finally:
            writer.close()
