"""A carrier one can run: any interface of the table over HTTP, on this machine, misbehaving as told."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

from junhong_cmp.errors import ConfigError, DependencyUnavailableError, system_reason
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulator_faults import FaultPlan, Throttle
from junhong_cmp.gateway.simulator_log import RequestLog
from junhong_cmp.gateway.simulator_service import CarrierService
from junhong_cmp.gateway.simulator_stats import SimulatorStats
from junhong_cmp.gateway.simulators.dialect import JSON, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.table import SIMULATORS

STATS_PATH: Final = "/_sim/stats"

_FLUSH_INTERVAL_S: Final = 1.0
_SHUTDOWN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorConfig:
    """How the carrier behaves; ``port`` 0 takes a free one, ``throttle_qps`` counts per account.

    ``driver`` says whose interface it speaks, ``cards`` are the numbers on its list of cards.
    """

    credential: Credential
    driver: str = "generic"
    cards: Collection[str] = ()
    host: str = "127.0.0.1"
    port: int = 0
    latency: timedelta = timedelta(0)
    jitter: timedelta = timedelta(0)
    error_rate: float = 0.0
    throttle_qps: float | None = None
    unknown_rate: float = 0.0
    operation_delay: timedelta = timedelta(0)
    seed: int = 0
    log_path: Path | None = None


class CarrierSimulator:
    """A carrier simulator serves one carrier over HTTP until it is stopped."""

    def __init__(self, config: SimulatorConfig) -> None:
        self._host = config.host
        self._port = config.port
        self._log_path = config.log_path
        self._log = RequestLog(config.log_path)
        self._stats = SimulatorStats()
        self._service = _compose(config, self._log, self._stats)
        self._runner: web.ServerRunner | None = None
        self._flusher: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on, once started."""
        if self._runner is None:
            raise RuntimeError("the simulator is not running")
        return int(self._runner.addresses[0][1])

    @property
    def url(self) -> str:
        """The base URL for the gateway client, once started."""
        return f"http://{self._host}:{self.port}"

    async def start(self) -> None:
        """Listen; on error nothing is left open.

        Raises:
            ConfigError: the log cannot be written.
            DependencyUnavailableError: the port is taken.

        """
        try:
            self._log.open()
        except OSError as error:
            reason = system_reason(error)
            raise ConfigError([f"模拟网关的请求日志无法写入：{self._log_path}：{reason}"]) from error
        server = web.Server(self._serve, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        try:
            await runner.setup()
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            self._log.close()
            message = f"模拟网关无法监听 {self._host}:{self._port}，端口可能已被占用"
            raise DependencyUnavailableError(message) from error
        self._runner = runner
        self._flusher = asyncio.create_task(self._flush_regularly(), name="simulator-log")

    async def stop(self) -> None:
        """Stop listening, let requests under way end within a second, and write the log out."""
        if self._flusher is not None:
            self._flusher.cancel()
            with suppress(asyncio.CancelledError):
                await self._flusher
            self._flusher = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._log.close()

    async def _flush_regularly(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_INTERVAL_S)
            self._log.flush()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET" and request.path == STATS_PATH:
            return web.Response(body=orjson.dumps(self._stats.snapshot()), content_type=JSON)
        body = await request.read()
        asked = Request(request.method, request.path, request.query, request.headers, body)
        return _response(await self._service.respond(asked))


async def serve(
    config: SimulatorConfig, *, until: asyncio.Event, on_ready: Callable[[CarrierSimulator], None]
) -> None:
    """Run a simulator from ``on_ready``, called once it listens, to ``until``."""
    simulator = CarrierSimulator(config)
    await simulator.start()
    try:
        on_ready(simulator)
        await until.wait()
    finally:
        await simulator.stop()


def _compose(config: SimulatorConfig, log: RequestLog, stats: SimulatorStats) -> CarrierService:
    book = CardBook(
        seed=config.seed,
        unknown_rate=config.unknown_rate,
        operation_delay=config.operation_delay,
        cards=config.cards,
    )
    open_dialect = SIMULATORS.get(config.driver)
    if open_dialect is None:
        raise ConfigError([f"没有这种网关的模拟器：{config.driver}，可选：{'、'.join(SIMULATORS)}"])
    faults = FaultPlan(
        latency=config.latency, jitter=config.jitter, error_rate=config.error_rate, seed=config.seed
    )
    return CarrierService(
        dialect=open_dialect(SimulatorParts(book, config.credential)),
        faults=faults,
        throttle=Throttle(config.throttle_qps),
        log=log,
        stats=stats,
    )


def _response(reply: Reply) -> web.Response:
    response = web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)
    if reply.retry_after_s is not None:
        response.headers["Retry-After"] = str(reply.retry_after_s)
    return response
