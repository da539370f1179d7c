"""Embedded PostgreSQL: a private cluster on a unix socket."""

import os
import shutil
import signal
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

import asyncpg

from junhong_cmp.embedded.account import Account, alias_for
from junhong_cmp.embedded.binaries import PostgresPrograms
from junhong_cmp.embedded.launch import NAMESPACE_REFUSED
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
from junhong_cmp.embedded.readiness import wait_ready
from junhong_cmp.errors import DependencyUnavailableError

DATABASE_USER: Final = "junhong"
_PORT: Final = 5432  # part of the socket's file name only
_START_LIMIT: Final = timedelta(seconds=60)  # recovery after a crash included
_INITDB_LIMIT: Final = timedelta(seconds=120)
_STOP_LIMIT: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPlace:
    """Where an embedded PostgreSQL lives and who runs it.

    ``durable`` False trades crash safety for speed (tests). ``account`` None: the current user.
    """

    programs: PostgresPrograms
    data_folder: Path
    socket_folder: Path
    log_path: Path
    pid_path: Path | None = None
    account: Account | None = None
    durable: bool = True


class EmbeddedPostgres:
    """An embedded PostgreSQL makes a cluster on first use and runs it for this process alone.

    It listens on no port. Whoever can enter the socket's folder (mode 0700) is trusted without a password.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._process: ChildProcess | None = None

    @property
    def process(self) -> ChildProcess | None:
        """The postmaster of the latest start."""
        return self._process

    def dsn(self, database: str) -> str:
        """Return the URL of one database of the cluster."""
        host = quote(str(self._place.socket_folder), safe="/")
        return f"postgresql://{DATABASE_USER}@/{database}?host={host}&port={_PORT}"

    async def start(self) -> None:
        """Make the cluster if there is none, start the server and return when it answers.

        Raises:
            DependencyUnavailableError: the cluster could not be made, or the server did not come up.

        """
        place = self._place
        self._claim_folder(place.socket_folder)
        if not place.data_folder.exists():
            await self._make_cluster()
        self._process = self._child("postgres", self._server_arguments())
        self._process.start()
        try:
            await wait_ready(self._process, self._answers, title="内置 PostgreSQL", limit=_START_LIMIT)
        except BaseException:  # a cancelled start leaves nothing running either
            await self._process.stop(_STOP_LIMIT)
            raise

    async def stop(self) -> None:
        """Disconnect everybody, write a checkpoint and end (PostgreSQL's fast shutdown)."""
        if self._process is not None:
            await self._process.stop(_STOP_LIMIT)

    async def kill(self) -> None:
        """End the server at once, as a crash would (its immediate shutdown: recovery at the next start).

        Not SIGKILL: the backends have sessions of their own and would outlive their postmaster for a moment,
        which keeps the next start from taking the shared memory.
        """
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            await self._process.wait()

    async def restart(self) -> None:
        """Stop and start again with the data kept."""
        await self.stop()
        await self.start()

    async def create_database(self, name: str, *, template: str | None = None) -> None:
        """Create a database unless it exists; ``template`` names one nobody is connected to."""
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name) is None:
                source = "" if template is None else f' TEMPLATE "{template}"'
                await connection.execute(f'CREATE DATABASE "{name}"{source}')
        finally:
            await connection.close()

    async def drop_database(self, name: str) -> None:
        """Drop a database, disconnecting whoever still uses it."""
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        finally:
            await connection.close()

    async def _make_cluster(self) -> None:
        """Make the cluster beside its place and move it there when whole: half a one would never start."""
        place = self._place
        draft = place.data_folder.with_name(f"{place.data_folder.name}.unfinished")
        shutil.rmtree(draft, ignore_errors=True)
        self._claim_folder(draft)
        arguments = [str(place.programs.initdb), "-D", str(draft), "-U", DATABASE_USER]
        arguments += ["--encoding=UTF8", "--no-locale", "--auth-local=trust", "--auth-host=reject"]
        if not place.durable:
            arguments.append("--no-sync")
        uid = os.geteuid() if place.account is None else place.account.uid
        process = self._child("initdb", arguments, alias=alias_for(uid))
        process.start()
        try:
            code = await process.run_out(_INITDB_LIMIT)
        except BaseException:  # a cancelled start leaves nothing running either
            await process.kill()
            raise
        if code == NAMESPACE_REFUSED:
            raise DependencyUnavailableError(
                f"PostgreSQL 不能由未登记的账号（uid {uid}）初始化：请在 /etc/passwd 登记它，或换一个账号运行"
            )
        if code != 0:
            raise DependencyUnavailableError(
                f"内置 PostgreSQL 初始化失败（退出码 {code}），日志 {place.log_path}：\n{process.log_tail(8)}"
            )
        draft.rename(place.data_folder)

    def _server_arguments(self) -> list[str]:
        place = self._place
        settings = {
            "listen_addresses": "",
            "port": str(_PORT),
            "unix_socket_directories": str(place.socket_folder),
            "unix_socket_permissions": "0700",
            "max_connections": "100",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "lc_messages": "C",
            "jit": "off",
        }
        if not place.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(place.programs.postgres), "-D", str(place.data_folder), *flags]

    def _child(self, name: str, arguments: list[str], alias: int | None = None) -> ChildProcess:
        return ChildProcess(
            ProcessSpec(
                name=name,
                arguments=arguments,
                log_path=self._place.log_path,
                pid_path=self._place.pid_path,
                working_folder=Path("/"),
                stop_signal=signal.SIGINT,
                account=self._place.account,
                alias=alias,
            )
        )

    def _claim_folder(self, folder: Path) -> None:
        if self._place.account is not None:
            self._place.account.take_over(folder)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    async def _answers(self) -> bool:
        try:
            connection = await asyncpg.connect(self.dsn("postgres"), timeout=5)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        await connection.close()
        return True
