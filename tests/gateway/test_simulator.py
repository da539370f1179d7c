import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from tests.waiting import wait_until

from junhong_cmp.errors import ConfigError, DependencyUnavailableError
from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import Transient
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.signing import Credential, signed_headers
from junhong_cmp.gateway.simulator import STATS_PATH, CarrierSimulator, SimulatorConfig, serve
from junhong_cmp.gateway.simulator_log import read_log, summarise

CARD = CardRef(1, "89860012345678900017")


@asynccontextmanager
async def running(config: SimulatorConfig) -> AsyncIterator[tuple[CarrierSimulator, HttpGateway]]:
    simulator = CarrierSimulator(config)
    await simulator.start()
    gateway = open_http_gateway(
        base_url=simulator.url, credentials={}, default_credential=config.credential, allow_http=True
    )
    await gateway.open()
    try:
        yield simulator, gateway
    finally:
        await gateway.close()
        await simulator.stop()


async def test_every_call_is_in_the_log_when_it_has_stopped(
    tmp_path: Path, credential: Credential, account: GatewayAccount
) -> None:
    path = tmp_path / "calls.jsonl"
    other = CardRef(2, "89860012345678900025")
    async with running(SimulatorConfig(credential=credential, log_path=path)) as (_, gateway):
        await gateway.query_usage(account, CARD)
        await gateway.query_usage_batch(account, [CARD, other])
        await gateway.query_status(account, other)
    records = list(read_log(path))
    summary = summarise(records)
    assert summary.calls == {(CARD.iccid, "usage"): 2, (other.iccid, "usage"): 1, (other.iccid, "status"): 1}
    assert summary.outcomes == {"ok": 4}
    assert summary.overlaps == ()
    assert {record.account for record in records} == {account.code}


async def test_the_log_shows_two_calls_about_one_card_at_a_time(
    tmp_path: Path, credential: Credential, account: GatewayAccount
) -> None:
    path = tmp_path / "calls.jsonl"
    config = SimulatorConfig(credential=credential, log_path=path, latency=timedelta(milliseconds=100))
    async with running(config) as (simulator, gateway):
        await asyncio.gather(gateway.query_usage(account, CARD), gateway.query_usage(account, CARD))
        async with aiohttp.ClientSession() as session, session.get(simulator.url + STATS_PATH) as response:
            stats = await response.json()
    assert len(summarise(read_log(path)).overlaps) == 1
    assert stats == {
        "requests": 2,
        "ops": {"usage": 2},
        "outcomes": {"ok": 2},
        "in_flight": 0,
        "max_in_flight": 2,
        "overlaps": 1,
    }


async def test_the_log_is_written_while_it_runs(
    tmp_path: Path, credential: Credential, account: GatewayAccount
) -> None:
    path = tmp_path / "calls.jsonl"
    async with running(SimulatorConfig(credential=credential, log_path=path)) as (_, gateway):
        await gateway.query_usage(account, CARD)
        await wait_until(lambda: list(read_log(path)), timeout=5, description="the log was flushed")


async def test_errors_come_as_often_as_they_were_asked_for(
    tmp_path: Path, credential: Credential, account: GatewayAccount
) -> None:
    path = tmp_path / "calls.jsonl"
    failed = 0
    async with running(SimulatorConfig(credential=credential, error_rate=0.4, log_path=path)) as (_, gateway):
        for number in range(40):  # accounts, so that none fails often enough to rest
            try:
                await gateway.query_usage(account._replace(id=number), CARD)
            except Transient:
                failed += 1
    assert 5 < failed < 30
    assert summarise(read_log(path)).outcomes == {"ok": 40 - failed, "transient": failed}


async def test_a_replayed_request_is_refused(simulator: CarrierSimulator, credential: Credential) -> None:
    path, body = "/v1/usage/query", b'{"account":"a","iccid":"89860012345678900017"}'
    now_s = int(time.time())
    headers = signed_headers(credential, path=path, body=body, unix_s=now_s)
    async with aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(2):
            async with session.post(simulator.url + path, data=body, headers=headers) as response:
                statuses.append(response.status)
    assert statuses == [200, 401]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/usage/query"), ("POST", "/v2/x"), ("POST", STATS_PATH)]
)
async def test_other_places_are_not_found(simulator: CarrierSimulator, method: str, path: str) -> None:
    async with aiohttp.ClientSession() as session, session.request(method, simulator.url + path) as response:
        assert response.status == 404


async def test_unsigned_requests_are_refused(simulator: CarrierSimulator) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(simulator.url + "/v1/usage/query", data=b"{}") as response,
    ):
        assert response.status == 401
        assert (await response.json())["error"]["code"] == "auth"


async def test_a_signed_request_that_is_not_understood_is_refused(
    simulator: CarrierSimulator, credential: Credential
) -> None:
    path, body = "/v1/usage/query", b'{"account":"a"}'
    headers = signed_headers(credential, path=path, body=body, unix_s=int(time.time()))
    async with (
        aiohttp.ClientSession() as session,
        session.post(simulator.url + path, data=body, headers=headers) as response,
    ):
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "bad_request"


async def test_a_taken_port_is_a_clear_error(credential: Credential) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        simulator = CarrierSimulator(SimulatorConfig(credential=credential, port=port))
        with pytest.raises(DependencyUnavailableError, match=f"127.0.0.1:{port}"):
            await simulator.start()
        await simulator.stop()


async def test_an_unwritable_log_is_a_clear_error(credential: Credential, tmp_path: Path) -> None:
    simulator = CarrierSimulator(SimulatorConfig(credential=credential, log_path=tmp_path / "no" / "log"))
    with pytest.raises(ConfigError, match="请求日志无法写入"):
        await simulator.start()


async def test_it_starts_and_stops_again_and_again(credential: Credential, account: GatewayAccount) -> None:
    for _ in range(5):
        async with running(SimulatorConfig(credential=credential)) as (simulator, gateway):
            await gateway.query_usage(account, CARD)
        with pytest.raises(RuntimeError):
            _ = simulator.port


async def test_stopping_does_not_wait_for_slow_calls(credential: Credential, account: GatewayAccount) -> None:
    config = SimulatorConfig(credential=credential, latency=timedelta(minutes=1))
    async with running(config) as (simulator, gateway):
        call = asyncio.create_task(gateway.query_usage(account, CARD))
        await wait_until(
            lambda: simulator._stats.snapshot()["in_flight"], description="the call is under way"
        )
        async with asyncio.timeout(5):
            await simulator.stop()
        with pytest.raises(Transient):
            await call


async def test_serve_runs_until_it_is_told(credential: Credential) -> None:
    until = asyncio.Event()
    urls: list[str] = []

    def on_ready(simulator: CarrierSimulator) -> None:
        urls.append(simulator.url)
        until.set()

    await serve(SimulatorConfig(credential=credential), until=until, on_ready=on_ready)
    assert urls[0].startswith("http://127.0.0.1:")
