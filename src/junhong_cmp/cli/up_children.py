"""The child processes of ``junhong up`` that run this program: the simulated carrier and the worker."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
from junhong_cmp.embedded.readiness import wait_ready

_READY_LIMIT = timedelta(seconds=30)
_KEY_ID = "demo"
_BRIEF_LEASE = {"JUNHONG_LEASE_TTL": "3s", "JUNHONG_LEASE_RENEW": "1s", "JUNHONG_LEASE_RETRY": "500ms"}
"""Nobody else contends here, and a run after one that was killed shall not wait long for its lease."""


@dataclass(frozen=True, slots=True)
class DemoKey:
    """The signing key shared by simulator and worker, made anew at every start and written nowhere."""

    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """The key as environment variables of both processes."""
        return {"JUNHONG_GATEWAY_KEY_ID": _KEY_ID, "JUNHONG_GATEWAY_SECRET": self.secret}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLinks:
    """What the worker is connected to."""

    redis_url: str
    postgres_dsn: str
    storage_url: str
    gateway_url: str


async def start_simulator(
    folder: DataFolder, key: DemoKey, request_log: Path | None
) -> tuple[ChildProcess, str]:
    """Start the simulated carrier; return it with its URL once it listens.

    Raises:
        DependencyUnavailableError: it did not come up.

    """
    url_file = folder.root / "simulator.url"
    _forget(url_file)
    arguments = ["simulate-gateway", "--port", "0", "--url-file", str(url_file)]
    if request_log is not None:
        arguments += ["--log", str(request_log)]
    process = _child(folder, "simulator", arguments, key.variables)
    process.start()

    async def listens() -> bool:
        return url_file.exists()

    try:
        await wait_ready(process, listens, title="模拟网关", limit=_READY_LIMIT)
    except BaseException:  # a cancelled start leaves nothing running either
        await process.kill()
        raise
    return process, url_file.read_text(encoding="utf-8").strip()


def start_worker(
    folder: DataFolder, key: DemoKey, links: WorkerLinks, config_file: Path | None
) -> ChildProcess:
    """Start one worker in role ``all``; whatever else it is told comes from the user's own configuration."""
    variables = {
        "JUNHONG_WORKER_ROLE": "all",
        "JUNHONG_WORKER_INSTANCE_NAME": "demo",
        "JUNHONG_REDIS_URL": links.redis_url,
        "JUNHONG_POSTGRES_DSN": links.postgres_dsn,
        "JUNHONG_STORAGE_URL": links.storage_url,
        "JUNHONG_GATEWAY_URL": links.gateway_url,
        "JUNHONG_GATEWAY_ALLOW_HTTP": "true",
        "JUNHONG_LOG_FORMAT": "json",
        **_BRIEF_LEASE,
        **key.variables,
    }
    if config_file is not None:
        variables["JUNHONG_CONFIG"] = str(config_file)
    process = _child(folder, "worker", ["worker"], variables)
    process.start()
    return process


def _child(
    folder: DataFolder, name: str, arguments: Sequence[str], variables: Mapping[str, str]
) -> ChildProcess:
    return ChildProcess(
        ProcessSpec(
            name=name,
            arguments=[sys.executable, "-m", "junhong_cmp", *arguments],
            log_path=folder.logs / f"{name}.log",
            pid_path=folder.pids / f"{name}.pid",
            working_folder=Path.cwd(),  # a `.env` beside us is meant for the worker too
            environment=_environment(variables),
        )
    )


def _forget(url_file: Path) -> None:
    url_file.unlink(missing_ok=True)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Our own environment with ``variables`` in it, and without ``_FILE`` forms that contradict them."""
    contradicted = {f"{name}_FILE" for name in variables}
    kept = {name: value for name, value in os.environ.items() if name not in contradicted}
    return {**kept, "PYTHONUNBUFFERED": "1", **variables}
