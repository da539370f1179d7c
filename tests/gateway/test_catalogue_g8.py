"""G8: a carrier that is not who it should be, or cannot be found, is not talked to."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.gateway.authority import DAY, NOW, Authority, Leaf
from tests.gateway.clients import ACCOUNT, CARD, SHORT, gateway_for
from tests.gateway.scripted_server import Exchange, always, http_answer, json_answer, scripted_server
from tests.waiting import wait_until
from yarl import URL

from junhong_cmp.gateway.errors import (
    AccountPausing,
    AuthRejected,
    BadResponse,
    GatewayError,
    GatewayNotConfigured,
    Transient,
)
from junhong_cmp.gateway.exchanges import HttpAnswer
from junhong_cmp.gateway.transport import GatewayTimeouts, HttpTransport

OK = json_answer({"ok": True})


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority the machine trusts."""
    authority = Authority(tmp_path, "trusted")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    return authority


async def ask(transport: HttpTransport, url: str) -> HttpAnswer:
    return await transport.post(URL(url), b"{}", dict, resend=True)


@asynccontextmanager
async def transport_with(
    resolver: AbstractResolver | None = None,
    timeouts: GatewayTimeouts = SHORT,
    dns_ttl: timedelta = timedelta(minutes=1),
) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(timeouts, resolver=resolver, dns_ttl=dns_ttl)
    await transport.open()
    try:
        yield transport
    finally:
        await transport.close()


async def test_the_right_certificate_is_believed(authority: Authority) -> None:
    async with (
        scripted_server(always(OK), tls=authority.server(Leaf())) as server,
        transport_with() as transport,
    ):
        assert (await ask(transport, server.url)).status == 200


async def refusal_by(context: ssl.SSLContext) -> GatewayError:
    async with scripted_server(always(OK), tls=context) as server, transport_with() as transport:
        with pytest.raises(AuthRejected, match="TLS") as caught:
            await ask(transport, server.url)
        assert not server.exchanges, "not a byte of a request is sent"
    return caught.value


@pytest.mark.parametrize(
    "leaf",
    [
        Leaf(begins=NOW - 3 * DAY, ends=NOW - DAY),
        Leaf(begins=NOW + DAY, ends=NOW + 3 * DAY),
        Leaf(host="other.example.com"),
        Leaf(host="127.0.0.2"),
    ],
    ids=["expired", "not yet valid", "another host", "another address"],
)
async def test_a_certificate_that_does_not_fit_pauses_the_account(authority: Authority, leaf: Leaf) -> None:
    error = await refusal_by(authority.server(leaf))
    assert isinstance(error, AccountPausing)
    assert error.pause >= timedelta(minutes=1)


@pytest.mark.usefixtures("authority")
async def test_an_authority_nobody_trusts_is_refused(tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    await refusal_by(stranger.server(Leaf()))


OLD = [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1]


@pytest.mark.parametrize("version", OLD, ids=lambda version: version.name)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_old_versions_of_tls_are_refused(authority: Authority, version: ssl.TLSVersion) -> None:
    """This server says why it ends the handshake, as OpenSSL does by itself and asyncio does not."""
    context = authority.server(Leaf(), highest=version)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse_one() -> None:
            connection, _ = listening.accept()
            with connection, suppress(ssl.SSLError):
                context.wrap_socket(connection, server_side=True)

        server = asyncio.create_task(asyncio.to_thread(refuse_one))
        async with transport_with() as transport:
            with pytest.raises(AuthRejected, match="TLS"):
                await ask(transport, f"https://127.0.0.1:{listening.getsockname()[1]}")
        await server


async def test_a_handshake_that_is_broken_off_passes_for_an_outage(authority: Authority) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    assert authority.path.exists()
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server, transport_with() as transport:
        with pytest.raises(Transient, match="TLS 握手") as caught:
            await ask(transport, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert caught.value.maybe_executed is False


async def test_a_self_signed_certificate_of_the_right_name_is_refused(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = Path(__file__).parent / "tls"
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    assert authority.path.exists()
    await refusal_by(context)


class Names(AbstractResolver):
    """Names that lead where a test says, after as long as it says."""

    def __init__(self, *addresses: str, delay_s: float = 0) -> None:
        self.addresses = list(addresses)
        self.delay_s = delay_s
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        await asyncio.sleep(self.delay_s)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=family,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self.addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("names", "reason"),
    [(Names(), "主机名解析失败"), (Names("127.0.0.1", delay_s=60), "连接网关超时")],
    ids=["unknown", "slow"],
)
async def test_a_name_that_is_not_found_in_time_says_that_nothing_was_sent(names: Names, reason: str) -> None:
    async with transport_with(names) as transport:
        with pytest.raises(Transient, match=reason) as caught:
            await ask(transport, "http://gw.example.com")
    assert caught.value.maybe_executed is False


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "100.100.100.200",
        "0.0.0.0",  # noqa: S104 - an address to refuse
        "224.0.0.1",
        "255.255.255.255",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::",
    ],
)
async def test_a_name_that_leads_to_a_forbidden_address_is_not_followed(address: str) -> None:
    async with transport_with(Names("127.0.0.1", address)) as transport:
        with pytest.raises(GatewayNotConfigured, match="不允许的网络地址"):
            await ask(transport, "http://gw.example.com")


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"])
async def test_a_forbidden_address_in_disguise_is_not_followed(host: str) -> None:
    """The system's resolver takes all of these for 169.254.169.254."""
    async with transport_with() as transport:
        with pytest.raises(GatewayNotConfigured):
            await ask(transport, f"http://{host}")


async def test_a_moved_name_is_followed_once_its_time_is_over() -> None:
    names = Names("127.0.0.1")
    async with (
        scripted_server(always(http_answer(b"{}", extra="Connection: close\r\n"))) as server,
        transport_with(names, dns_ttl=timedelta(seconds=1)) as transport,
    ):
        url = f"http://gw.example.com:{URL(server.url).port}"
        await ask(transport, url)
        await ask(transport, url)
        assert names.asked == 1, "within its time a name is not asked for again"
        names.addresses = ["169.254.169.254"]

        async def noticed() -> bool:
            try:
                await ask(transport, url)
            except GatewayNotConfigured:
                return True
            return False

        await wait_until(noticed, timeout=5, description="the new address is known, and refused")


async def test_of_several_addresses_a_dead_one_is_passed_over() -> None:
    async with (
        scripted_server(always(OK)) as server,
        transport_with(Names("127.0.0.9", "127.0.0.1")) as transport,
    ):
        answer = await ask(transport, f"http://gw.example.com:{URL(server.url).port}")
    assert answer.status == 200


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
async def test_nobody_is_sent_elsewhere(status: str) -> None:
    async with scripted_server(always(OK)) as elsewhere:
        answer = http_answer(b"{}", status=status, extra=f"Location: {elsewhere.url}/v1/usage/query\r\n")
        async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
            with pytest.raises(BadResponse, match=status[:3]):
                await gateway.query_usage(ACCOUNT, CARD)
        assert elsewhere.connections == 0


async def test_nobody_is_talked_into_another_protocol() -> None:
    async def switch(exchange: Exchange) -> None:
        await exchange.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
        )

    async with scripted_server(switch) as server, gateway_for(server.url) as gateway:
        with pytest.raises((BadResponse, Transient)):
            await gateway.query_usage(ACCOUNT, CARD)
