import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from tests.worker_process import environment

from junhong_cmp.gateway.answers import same_card
from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.http import open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import expected_usage_kb
from junhong_cmp.gateway.simulator_log import read_log, summarise
from junhong_cmp.gateway.simulators.table import SIMULATORS

SECRET = "canary-secret-of-the-tests"
CARD = CardRef(1, "89860012345678900017")


@asynccontextmanager
async def simulator(*options: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "junhong_cmp", "simulate-gateway", *options),
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def first_line(process: asyncio.subprocess.Process) -> dict[str, object]:
    assert process.stdout is not None
    ready: dict[str, object] = orjson.loads(await asyncio.wait_for(process.stdout.readline(), 20))
    return ready


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_tells_its_address_serves_and_ends_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    log, url_file, secret = tmp_path / "calls.jsonl", tmp_path / "url", tmp_path / "secret"
    secret.write_text(SECRET + "\n", encoding="utf-8")
    options = ("--seed", "3", "--log", str(log), "--url-file", str(url_file), "--secret-file", str(secret))
    async with simulator(*options) as process:
        ready = await first_line(process)
        assert ready["pid"] == process.pid
        assert url_file.read_text(encoding="utf-8") == ready["url"] == f"http://127.0.0.1:{ready['port']}"
        gateway = open_http_gateway(
            base_url=str(ready["url"]),
            credentials={},
            default_credential=Credential("demo", SECRET),
            allow_http=True,
        )
        await gateway.open()
        answer = await gateway.query_usage(GatewayAccount(1, "a"), CARD)
        await gateway.close()
        assert answer.used_kb == expected_usage_kb(CARD.iccid, answer.reading_at, seed=3)
        process.send_signal(number)
        output, errors = await asyncio.wait_for(process.communicate(), 10)
    assert (process.returncode, output, errors) == (0, b"", b"")
    assert summarise(read_log(log)).calls == {(CARD.iccid, "usage"): 1}


async def ended(*options: str, **variables: str) -> tuple[int | None, str]:
    async with simulator(*options, **variables) as process:
        _, errors = await asyncio.wait_for(process.communicate(), 20)
    return process.returncode, errors.decode()


async def test_without_a_secret_it_says_how_to_give_one() -> None:
    code, errors = await ended()
    assert code == 78
    assert "--secret-file" in errors
    assert "JUNHONG_GATEWAY_SECRET" in errors


async def test_a_short_secret_is_refused_without_being_shown() -> None:
    code, errors = await ended(JUNHONG_GATEWAY_SECRET="canary")
    assert code == 78
    assert "canary" not in errors


async def test_a_missing_secret_file_is_named(tmp_path: Path) -> None:
    code, errors = await ended(JUNHONG_GATEWAY_SECRET_FILE=str(tmp_path / "none"))
    assert code == 78
    assert str(tmp_path / "none") in errors


async def test_a_taken_port_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, errors = await ended("--port", str(taken.getsockname()[1]), JUNHONG_GATEWAY_SECRET=SECRET)
    assert code == 69
    assert "端口可能已被占用" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("option", ["--url-file", "--log"])
async def test_an_unwritable_file_is_one_clear_error(tmp_path: Path, option: str) -> None:
    code, errors = await ended(option, str(tmp_path / "no" / "file"), JUNHONG_GATEWAY_SECRET=SECRET)
    assert code == 1
    assert f"错误：{option} 无法写入 {tmp_path / 'no' / 'file'}：文件夹 {tmp_path / 'no'} 不存在" in errors


@pytest.mark.parametrize("content", [None, b"\xff\xfe8986"])
async def test_a_list_of_cards_that_cannot_be_read_is_told_with_the_reason(
    tmp_path: Path, content: bytes | None
) -> None:
    cards = tmp_path / "cards.txt"
    if content is not None:
        cards.write_bytes(content)
    code, errors = await ended("--cards", str(cards), JUNHONG_GATEWAY_SECRET=SECRET)
    assert code == 78
    assert f"{cards}：{'不存在' if content is None else '不是 UTF-8 编码'}" in errors


async def test_it_lists_the_cards_it_was_told(tmp_path: Path) -> None:
    cards = tmp_path / "cards.txt"
    cards.write_text(f"{CARD.iccid}\n89860012345678900025\n", encoding="utf-8")
    async with simulator("--cards", str(cards), JUNHONG_GATEWAY_SECRET=SECRET) as process:
        ready = await first_line(process)
        gateway = open_http_gateway(
            base_url=str(ready["url"]),
            credentials={},
            default_credential=Credential("demo", SECRET),
            allow_http=True,
        )
        await gateway.open()
        page = await gateway.list_cards(GatewayAccount(1, "a"), None)
        await gateway.close()
    assert [card.iccid for card in page.cards] == [CARD.iccid, "89860012345678900025"]
    assert page.next_cursor is None


async def test_an_unknown_driver_is_answered_with_those_there_are() -> None:
    code, errors = await ended("--driver", "carrier-pigeon", JUNHONG_GATEWAY_SECRET=SECRET)
    assert code == 78
    assert "carrier-pigeon" in errors
    assert "generic" in errors


async def test_a_missing_file_of_cards_is_named(tmp_path: Path) -> None:
    code, errors = await ended("--cards", str(tmp_path / "none"), JUNHONG_GATEWAY_SECRET=SECRET)
    assert code == 78
    assert str(tmp_path / "none") in errors


@pytest.mark.parametrize("driver", SIMULATORS)
async def test_every_driver_finds_its_carrier_there(driver: str, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    options = ("--driver", driver, "--key-id", "demo", "--log", str(log), "--latency", "0", "--jitter", "0")
    async with simulator(*options, JUNHONG_GATEWAY_SECRET=SECRET) as process:
        ready = await first_line(process)
        gateway = open_http_gateway(
            base_url=str(ready["url"]),
            credentials={},
            default_credential=Credential("demo", SECRET),
            allow_http=True,
        )
        await gateway.open()
        account = GatewayAccount(1, "a", driver=driver, usage_unit=DRIVERS[driver].defaults.usage_unit)
        usage = await gateway.query_usage(account, CARD)
        status = await gateway.query_status(account, CARD)
        await gateway.close()
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 10)
    assert usage.iccid == status.iccid == CARD.iccid
    assert usage.used_kb > 0
    assert status.status == "active"
    calls = summarise(read_log(log)).calls
    assert {op for iccid, op in calls if same_card(iccid, CARD.iccid)} >= {"usage", "status"}, calls
