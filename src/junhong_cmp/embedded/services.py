"""The embedded services as one: Redis and PostgreSQL of a data folder."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

import structlog

from junhong_cmp.embedded.account import unprivileged_account
from junhong_cmp.embedded.binaries import find_postgres_programs
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.embedded.pids import end_leftovers
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres, PostgresPlace
from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.embedded.redis_server import EmbeddedRedis, RedisPlace
from junhong_cmp.embedded.sockets import PASSABLE, PRIVATE, choose_socket_folder, private_folder
from junhong_cmp.errors import ConfigError

Server = TypeVar("Server", EmbeddedRedis, EmbeddedPostgres)

log = structlog.stdlib.get_logger(__name__)

DATABASE: Final = "junhong"
_LEFTOVER_LIMIT: Final = timedelta(seconds=20)


class EmbeddedServices:
    """Embedded services start Redis and PostgreSQL of a data folder together and stop them together.

    When this process is root, PostgreSQL runs under an unprivileged account. A data folder below one that is
    closed to this account (``/root``, say) cannot hold the cluster; it then lives in the machine's state
    folder, and a link in the data folder says where.
    """

    def __init__(self, root: Path) -> None:
        self.folder = DataFolder(root)
        self._account = unprivileged_account()
        self._sockets: Path | None = None
        self._redis: EmbeddedRedis | None = None
        self._postgres: EmbeddedPostgres | None = None

    @property
    def redis_url(self) -> str:
        """URL of the embedded Redis."""
        return _started(self._redis).url

    @property
    def postgres_dsn(self) -> str:
        """DSN of the application's database in the embedded PostgreSQL."""
        return _started(self._postgres).dsn(DATABASE)

    @property
    def processes(self) -> tuple[ChildProcess, ...]:
        """The server processes that have been started."""
        started = (server.process for server in self._servers)
        return tuple(process for process in started if process is not None)

    @property
    def _servers(self) -> list[EmbeddedRedis | EmbeddedPostgres]:
        return [server for server in (self._redis, self._postgres) if server is not None]

    def reserve(self) -> None:
        """Lock the folder, for whoever wants to know beforehand; ``folder.close()`` gives it back.

        Raises:
            ConfigError: the folder is not usable.
            DependencyUnavailableError: it is in use, or the disk is nearly full.

        """
        if not self.folder.is_open:
            self.folder.open(mode=PRIVATE if self._account is None else PASSABLE)

    async def start(self) -> None:
        """Lock the folder, end what a killed run left, start both servers and create the database.

        Raises:
            ConfigError: the folder is not usable.
            DependencyUnavailableError: it is in use, a program is missing, or a server did not come up.

        """
        self.reserve()
        try:
            await end_leftovers(self.folder.pids, _LEFTOVER_LIMIT)
            await self._start_servers()
            await _started(self._postgres).create_database(DATABASE)
        except BaseException:  # a cancelled start leaves nothing running either
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop both servers in good order and unlock the folder."""
        try:
            await _together(*(server.stop() for server in self._servers))
        finally:
            if self._sockets is not None:
                shutil.rmtree(self._sockets, ignore_errors=True)  # the short one lies outside the folder
            self.folder.close()

    async def _start_servers(self) -> None:
        self._sockets = sockets = choose_socket_folder(self.folder.root / "run", self._account)
        self._redis = EmbeddedRedis(
            RedisPlace(
                data_folder=self.folder.root / "redis",
                socket_path=sockets / "redis.sock",
                log_path=self.folder.logs / "redis.log",
                pid_path=self.folder.pids / "redis.pid",
            )
        )
        self._postgres = EmbeddedPostgres(
            PostgresPlace(
                programs=find_postgres_programs(self._account, lambda: _state_folder() / "programs"),
                data_folder=self._cluster_folder(),
                socket_folder=sockets / "pg",
                log_path=self.folder.logs / "postgres.log",
                pid_path=self.folder.pids / "postgres.pid",
                account=self._account,
            )
        )
        await _together(self._redis.start(), self._postgres.start())

    def _cluster_folder(self) -> Path:
        here, account = self.folder.root / "postgres", self._account
        folder = here if account is None or account.can_enter(self.folder.root) else self._linked_folder(here)
        owner = os.geteuid() if account is None else account.uid
        if folder.exists() and folder.stat().st_uid != owner:
            raise ConfigError([f"数据目录 {self.folder.root} 中的数据库属于其他账号，请用原来的账号运行"])
        return folder

    def _linked_folder(self, here: Path) -> Path:
        """Return the cluster's folder in the machine's state folder; ``here`` becomes a link to it."""
        digest = hashlib.sha256(os.fsencode(self.folder.root)).hexdigest()[:16]
        elsewhere = _state_folder() / "data" / digest
        if here.is_symlink() and here.readlink() == elsewhere:
            return elsewhere
        if here.exists():
            raise ConfigError([f"数据目录 {self.folder.root} 已不对数据库账号开放，请恢复其上级目录的权限"])
        # No link: the data folder is new, so a cluster under its name belongs to one that was deleted.
        shutil.rmtree(elsewhere, ignore_errors=True)
        elsewhere.parent.mkdir(mode=PASSABLE, exist_ok=True)
        here.unlink(missing_ok=True)
        here.symlink_to(elsewhere)
        log.info("数据目录不对数据库账号开放，数据库另存", folder=str(elsewhere))
        return elsewhere


def _started(server: Server | None) -> Server:
    if server is None:
        raise RuntimeError("内置服务尚未启动")
    return server


async def _together(*steps: Awaitable[None]) -> None:
    """Run all steps to their end, then raise the first error: none may go on behind a failed other one."""
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _state_folder() -> Path:
    """Return a folder of root's that survives a restart and that every account can pass through."""
    places = ((Path("/var/lib"), "junhong-cmp"), (Path("/var/tmp"), "junhong-cmp"))  # noqa: S108 - checked below
    for parent, name in places:
        with suppress(OSError):
            return private_folder(parent / name, mode=PASSABLE)
    raise ConfigError(
        ["/var/lib 与 /var/tmp 均不可写，内置 PostgreSQL 没有可用的目录；请开放其一，或不以 root 运行"]
    )
