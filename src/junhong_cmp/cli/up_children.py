"""The child processes of ``junhong up`` that run this program: the simulated carrier and the worker."""

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson

from junhong_cmp.cli.up_carriers import DemoCarrier
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
from junhong_cmp.embedded.readiness import wait_ready

_READY_LIMIT = timedelta(seconds=30)
_THROTTLED_QPS: Final = 0.2
"""Calls a second that a throttled carrier answers; it refuses all others."""
_BRIEF_LEASE = {"JUNHONG_LEASE_TTL": "3s", "JUNHONG_LEASE_RENEW": "1s", "JUNHONG_LEASE_RETRY": "500ms"}
"""Nobody else contends here, and a run after one that was killed shall not wait long for its lease."""


@dataclass(frozen=True, slots=True)
class DemoKey:
    """A signing key shared by a simulator and the worker, made anew at every start and written nowhere."""

    key_id: str = "demo"
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """The key as environment variables of both processes."""
        return {"JUNHONG_GATEWAY_KEY_ID": self.key_id, "JUNHONG_GATEWAY_SECRET": self.secret}


@dataclass(frozen=True, slots=True)
class RunningSimulator:
    """A simulated carrier that listens, and the key it knows."""

    carrier: DemoCarrier
    key: DemoKey
    process: ChildProcess
    url: str

    @property
    def title(self) -> str:
        """What it is called in reports."""
        return _title(self.carrier)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLinks:
    """What the worker is connected to."""

    redis_url: str
    postgres_dsn: str
    storage_url: str


async def start_simulators(
    folder: DataFolder, carriers: Sequence[DemoCarrier], request_log: Path | None
) -> list[RunningSimulator]:
    """Start a simulated carrier for each; return them once all listen.

    Several write a log each, with the driver in its name. On error none is left running.

    Raises:
        DependencyUnavailableError: one did not come up.

    """
    outcomes = await asyncio.gather(
        *(_start_simulator(folder, carrier, request_log) for carrier in carriers), return_exceptions=True
    )
    started = [outcome for outcome in outcomes if isinstance(outcome, RunningSimulator)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            await asyncio.gather(*(simulator.process.kill() for simulator in started))
            raise outcome
    return started


def start_worker(
    folder: DataFolder,
    simulators: Sequence[RunningSimulator],
    links: WorkerLinks,
    config_file: Path | None,
) -> ChildProcess:
    """Start one worker in role ``all``; whatever else it is told comes from the user's own configuration."""
    variables = {
        "JUNHONG_WORKER_ROLE": "all",
        "JUNHONG_WORKER_INSTANCE_NAME": "demo",
        "JUNHONG_REDIS_URL": links.redis_url,
        "JUNHONG_POSTGRES_DSN": links.postgres_dsn,
        "JUNHONG_STORAGE_URL": links.storage_url,
        "JUNHONG_GATEWAY_URL": simulators[0].url,
        "JUNHONG_GATEWAY_ALLOW_HTTP": "true",
        "JUNHONG_LOG_FORMAT": "json",
        **_BRIEF_LEASE,
        **_key_variables(simulators),
    }
    if config_file is not None:
        variables["JUNHONG_CONFIG"] = str(config_file)
    process = _child(folder, "worker", ["worker"], variables)
    process.start()
    return process


async def _start_simulator(
    folder: DataFolder, carrier: DemoCarrier, request_log: Path | None
) -> RunningSimulator:
    key = DemoKey(carrier.code)
    url_file = folder.root / f"{carrier.process_name}.url"
    _forget(url_file)
    arguments = ["simulate-gateway", "--driver", carrier.driver, "--port", "0", "--url-file", str(url_file)]
    if carrier.throttled:
        arguments += ["--throttle-qps", str(_THROTTLED_QPS)]
    if request_log is not None:
        arguments += ["--log", str(log_of(carrier, request_log))]
    process = _child(folder, carrier.process_name, arguments, key.variables)
    process.start()

    async def listens() -> bool:
        return url_file.exists()

    try:
        await wait_ready(process, listens, title=_title(carrier), limit=_READY_LIMIT)
    except BaseException:  # a cancelled start leaves nothing running either
        await process.kill()
        raise
    return RunningSimulator(carrier, key, process, url_file.read_text(encoding="utf-8").strip())


def log_of(carrier: DemoCarrier, request_log: Path) -> Path:
    """Return where a carrier's requests are written down."""
    if carrier.alone:
        return request_log
    return request_log.with_name(f"{request_log.stem}-{carrier.driver}{request_log.suffix}")


def _title(carrier: DemoCarrier) -> str:
    return "模拟网关" if carrier.alone else f"模拟网关 {carrier.driver}"


def _key_variables(simulators: Sequence[RunningSimulator]) -> dict[str, str]:
    """Give the worker each account's key under the name its row has for it."""
    variables: dict[str, str] = {}
    by_ref: dict[str, dict[str, str]] = {}
    for simulator in simulators:
        key, ref = simulator.key, simulator.carrier.credential_ref
        if ref is None:
            variables |= key.variables
        else:
            by_ref[ref] = {"key_id": key.key_id, "secret": key.secret}
    if by_ref:
        variables["JUNHONG_GATEWAY_CREDENTIALS"] = orjson.dumps(by_ref).decode()
    return variables


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
