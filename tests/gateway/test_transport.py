import asyncio
import gzip
import socket
import ssl
import traceback
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.gateway.scripted_resolver import ScriptedResolver
from tests.gateway.scripted_server import (
    Exchange,
    Respond,
    ScriptedServer,
    always,
    http_answer,
    json_answer,
    scripted_server,
)
from tests.waiting import wait_until
from yarl import URL

from junhong_cmp.gateway.errors import (
    AuthRejected,
    BadResponse,
    GatewayError,
    GatewayNotConfigured,
    Transient,
)
from junhong_cmp.gateway.exchanges import HttpAnswer
from junhong_cmp.gateway.transport import GatewayTimeouts, HttpTransport

SHORT = GatewayTimeouts(
    connect=timedelta(seconds=0.3), read=timedelta(seconds=0.3), total=timedelta(seconds=0.8)
)
OK = json_answer({"ok": True})
TLS = Path(__file__).parent / "tls"


@asynccontextmanager
async def transport(timeouts: GatewayTimeouts = SHORT) -> AsyncIterator[HttpTransport]:
    opened = HttpTransport(timeouts)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def post(client: HttpTransport, url: str, *, resend: bool = True) -> HttpAnswer:
    signings: list[str] = []

    def sign() -> dict[str, str]:
        signings.append("signed")
        return {"X-Attempt": str(len(signings))}

    return await client.post(URL(url), b'{"q":1}', sign, resend=resend)


async def ask(respond: Respond, *, resend: bool = True) -> tuple[HttpAnswer, ScriptedServer]:
    async with scripted_server(respond) as server, transport() as client:
        return await post(client, server.url, resend=resend), server


async def test_an_answer_comes_whole_with_what_matters_of_its_head() -> None:
    busy = http_answer(b"{}", status="429 Too Many Requests", extra="Retry-After: 7\r\n")
    answer, server = await ask(always(busy))
    assert answer == HttpAnswer(429, "application/json", "7", b"{}")
    head = server.exchanges[0].head.decode()
    assert head.startswith("POST / HTTP/1.1\r\n")
    assert "X-Attempt: 1" in head
    assert "Content-Type: application/json" in head
    assert server.exchanges[0].body == b'{"q":1}'


async def test_calls_share_a_connection() -> None:
    async with scripted_server(always(OK)) as server, transport() as client:
        for _ in range(5):
            await post(client, server.url)
        assert len(server.exchanges) == 5
        assert server.connections == 1


async def test_a_connect_timeout_says_that_nothing_was_sent() -> None:
    """A TLS handshake that is never answered is part of connecting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with transport() as client:
            with pytest.raises(Transient, match="连接网关超时") as caught:
                await post(client, f"https://127.0.0.1:{silent.getsockname()[1]}")
    assert caught.value.maybe_executed is False


async def test_a_read_timeout_says_that_it_may_have_happened_and_is_not_sent_again() -> None:
    async def never(_: Exchange) -> None:
        await asyncio.Event().wait()

    async with scripted_server(never) as server, transport() as client:
        with pytest.raises(Transient, match="等待网关应答超时") as caught:
            await post(client, server.url)
        assert len(server.exchanges) == 1
    assert caught.value.maybe_executed is True


async def test_a_trickle_runs_into_the_total_timeout() -> None:
    async def trickle(exchange: Exchange) -> None:
        await exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
        )
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(0.02)

    with pytest.raises(Transient, match="总时限"):
        await ask(trickle)


async def test_a_refused_connection_says_that_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with transport() as client:
        with pytest.raises(Transient, match="无法连接网关") as caught:
            await post(client, f"http://127.0.0.1:{port}")
    assert caught.value.maybe_executed is False


async def test_a_dropped_harmless_call_is_sent_again_signed_anew() -> None:
    async def drop_first(exchange: Exchange) -> None:
        if exchange.number == 0:
            exchange.reset()
        else:
            await exchange.send(OK)

    answer, server = await ask(drop_first)
    assert answer.status == 200
    assert [b"X-Attempt: 2" in exchange.head for exchange in server.exchanges] == [False, True]


async def test_a_dropped_call_is_sent_again_only_once() -> None:
    async def drop(exchange: Exchange) -> None:
        exchange.reset()

    async with scripted_server(drop) as server, transport() as client:
        with pytest.raises(Transient, match="中断") as caught:
            await post(client, server.url)
        assert len(server.exchanges) == 2
    assert caught.value.maybe_executed is True


async def test_a_dropped_operation_is_never_sent_again() -> None:
    async def drop(exchange: Exchange) -> None:
        exchange.reset()

    async with scripted_server(drop) as server, transport() as client:
        with pytest.raises(Transient) as caught:
            await post(client, server.url, resend=False)
        assert len(server.exchanges) == 1
    assert caught.value.maybe_executed is True


async def test_an_answer_cut_in_the_middle_is_no_answer() -> None:
    async def cut(exchange: Exchange) -> None:
        await exchange.send(OK[:-3])
        exchange.writer.close()

    with pytest.raises(Transient):
        await ask(cut)


async def test_redirects_are_not_followed() -> None:
    async with scripted_server(always(OK)) as elsewhere:
        answer, _ = await ask(
            always(http_answer(b"", status="307 Temporary Redirect", extra=f"Location: {elsewhere.url}\r\n"))
        )
        assert answer.status == 307
        assert not elsewhere.exchanges


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_server(always(OK)) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        answer, server = await ask(always(OK))
        assert answer.status == 200
        assert len(server.exchanges) == 1
        assert not proxy.exchanges


async def test_cookies_are_not_kept() -> None:
    async with (
        scripted_server(always(json_answer({}, extra="Set-Cookie: a=1\r\n"))) as server,
        transport() as client,
    ):
        await post(client, server.url)
        await post(client, server.url)
        assert b"cookie" not in server.exchanges[1].head.lower()


async def test_compressed_answers_are_understood() -> None:
    for encoding, packed in (("gzip", gzip.compress(b'{"a":1}')), ("deflate", zlib.compress(b'{"a":1}'))):
        answer, _ = await ask(always(http_answer(packed, extra=f"Content-Encoding: {encoding}\r\n")))
        assert answer.body == b'{"a":1}'


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"0" * 50_000_000), "gzip"),
        (b"x" * (1024 * 1024 + 1), "identity"),
        (gzip.compress(b"{}")[:-4], "gzip"),
        (gzip.compress(b"{}") + b"more", "gzip"),
        (b"{}", "gzip"),
        (b"{}", "br"),
    ],
    ids=["bomb", "too long", "truncated", "trailing", "not compressed", "unknown encoding"],
)
async def test_a_body_that_is_too_long_or_broken_is_refused(body: bytes, encoding: str) -> None:
    with pytest.raises(BadResponse, match="网关响应无效"):
        await ask(always(http_answer(body, extra=f"Content-Encoding: {encoding}\r\n")))


async def test_a_body_of_exactly_the_limit_passes() -> None:
    answer, _ = await ask(always(http_answer(b"x" * 1024 * 1024)))
    assert len(answer.body) == 1024 * 1024


async def test_an_endless_body_is_cut_off_and_its_connection_not_used_again() -> None:
    async def endless(exchange: Exchange) -> None:
        if exchange.number:
            await exchange.send(OK)
            return
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await exchange.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    async with scripted_server(endless) as server, transport() as client:
        with pytest.raises(BadResponse, match="超过"):
            await post(client, server.url)
        assert (await post(client, server.url)).status == 200
        assert server.connections == 2


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
    ],
    ids=["long header", "many headers", "not http", "negative length", "tls alert"],
)
async def test_what_is_not_http_is_an_invalid_answer(data: bytes) -> None:
    with pytest.raises(BadResponse, match="网关响应无效"):
        await ask(always(data))


async def test_tls_with_a_stranger_is_refused_as_such() -> None:
    async with scripted_server(always(OK)) as server, transport() as client:

        async def answer_in_clear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        plain = await asyncio.start_server(answer_in_clear, "127.0.0.1", 0)
        async with plain:
            with pytest.raises(AuthRejected, match="TLS"):
                await post(client, f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}")
        assert not server.exchanges


def tls_server(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{certificate}.pem", TLS / "key.pem")
    return context


async def test_a_trusted_certificate_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "cert.pem"))
    async with scripted_server(always(OK), tls=tls_server("cert")) as server, transport() as client:
        assert (await post(client, server.url)).status == 200


@pytest.mark.parametrize(
    ("certificate", "trusted"),
    [("cert", "wrong_host"), ("expired", "expired"), ("wrong_host", "wrong_host")],
    ids=["unknown authority", "expired", "wrong host"],
)
async def test_any_other_certificate_is_refused_before_anything_is_sent(
    certificate: str, trusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / f"{trusted}.pem"))
    async with scripted_server(always(OK), tls=tls_server(certificate)) as server, transport() as client:
        with pytest.raises(AuthRejected, match="TLS"):
            await post(client, server.url)
        assert not server.exchanges


async def test_a_name_that_leads_to_a_forbidden_address_is_not_connected_to() -> None:
    client = HttpTransport(SHORT, resolver=ScriptedResolver("169.254.169.254"))
    await client.open()
    with pytest.raises(GatewayNotConfigured, match="不允许的网络地址"):
        await post(client, "http://gw.example.com")
    await client.close()


async def test_a_name_that_does_not_resolve_says_that_nothing_was_sent() -> None:
    class NoNames(ScriptedResolver):
        async def resolve(self, host: str, port: int = 0, family: object = None) -> list[object]:  # type: ignore[override]  # always fails
            raise OSError("no such host")

    client = HttpTransport(SHORT, resolver=NoNames())
    await client.open()
    with pytest.raises(Transient, match="主机名解析失败") as caught:
        await post(client, "http://gw.example.com")
    await client.close()
    assert caught.value.maybe_executed is False


async def test_a_closed_transport_refuses_without_sending() -> None:
    client = HttpTransport(SHORT)
    with pytest.raises(Transient, match="尚未打开") as caught:
        await post(client, "http://127.0.0.1:9")
    assert caught.value.maybe_executed is False


async def test_cancelling_a_call_cancels_it() -> None:
    async def never(_: Exchange) -> None:
        await asyncio.Event().wait()

    async with scripted_server(never) as server, transport(GatewayTimeouts()) as client:
        call = asyncio.create_task(post(client, server.url))
        await wait_until(lambda: server.exchanges, description="the call arrived")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def get(client: HttpTransport, url: str, *, resend: bool) -> HttpAnswer:
    attempts: list[str] = []

    def headers() -> dict[str, str]:
        attempts.append("made")
        return {"X-Attempt": str(len(attempts))}

    return await client.get(URL(url), headers=headers, resend=resend)


async def drop_all_but_first(exchange: Exchange) -> None:
    if exchange.number:
        exchange.reset()
    else:
        await exchange.send(OK)


async def test_a_question_in_the_address_is_sent_as_it_is_encoded() -> None:
    async with scripted_server(always(OK)) as server, transport() as client:
        url = URL(f"{server.url}/query.do?a=%2B1%20x&b=%E5%8D%A1", encoded=True)
        assert (await client.get(url)).status == 200
    head = server.exchanges[0].head
    assert head.startswith(b"GET /query.do?a=%2B1%20x&b=%E5%8D%A1 HTTP/1.1\r\n")
    assert b"content-type" not in head.lower()


async def test_a_get_that_changes_something_is_not_sent_again_even_on_a_kept_connection() -> None:
    async with scripted_server(drop_all_but_first) as server, transport() as client:
        await get(client, server.url, resend=False)
        with pytest.raises(Transient) as caught:
            await get(client, server.url, resend=False)
        assert len(server.exchanges) == 2
    assert caught.value.maybe_executed is True


async def test_a_harmless_get_is_sent_again_once_with_headers_of_its_own() -> None:
    async with scripted_server(drop_all_but_first) as server, transport() as client:
        await get(client, server.url, resend=True)
        with pytest.raises(Transient):
            await get(client, server.url, resend=True)
    attempts = [exchange.head.split(b"X-Attempt: ")[1][:1] for exchange in server.exchanges]
    assert attempts == [b"1", b"1", b"2"]


async def test_a_body_may_be_made_for_each_attempt() -> None:
    async def drop_first(exchange: Exchange) -> None:
        if exchange.number:
            await exchange.send(OK)
        else:
            exchange.reset()

    numbers = iter(range(10))
    async with scripted_server(drop_first) as server, transport() as client:
        await client.post(URL(server.url), lambda: b"%d" % next(numbers), dict, resend=True)
    assert [exchange.body for exchange in server.exchanges] == [b"0", b"1"]


SECRET_QUERY = "/query.do?passWord=canary"


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 2OO OK\r\n\r\n", b"\xff\xfe", OK[:-3]], ids=["line", "bytes", "cut"]
)
async def test_no_failure_tells_what_was_in_the_address(data: bytes) -> None:
    """Some carriers want the password there."""

    async def answer_badly(exchange: Exchange) -> None:
        await exchange.send(data)
        exchange.writer.close()

    async with scripted_server(answer_badly) as server, transport() as client:
        with pytest.raises(GatewayError) as caught:
            await client.get(URL(server.url + SECRET_QUERY), resend=False)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
