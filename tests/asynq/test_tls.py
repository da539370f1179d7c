"""The package over TLS: with a Redis that speaks it, and through a gate before one that does not."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from tests.asynq.secured import CERTIFICATES, SHOWN, TRUST, program_with_tls, tls_settings
from tests.asynq.serving import Recorder, open_bench
from tests.redis_servers import free_ports
from tests.waiting import wait_until

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec

ADDRESSES = ("127.0.0.1", "127.0.0.2")  # the certificate is for the first

pytestmark = pytest.mark.single_node("has a server of its own")


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
async def gate(redis_url: str) -> AsyncIterator[int]:
    """Ends TLS before the Redis of the tests; asks clients for a certificate. Its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATES / "authority.pem"))
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    links: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        links.add(task)
        inner_reader, inner_writer = await asyncio.open_unix_connection(urlsplit(redis_url).path)
        writers.extend((writer, inner_writer))
        await asyncio.gather(pipe(reader, inner_writer), pipe(inner_reader, writer))

    server = await asyncio.start_server(link, ADDRESSES, free_ports(1)[0], ssl=context)
    yield int(server.sockets[0].getsockname()[1])
    server.close()
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*links, *(writer.wait_closed() for writer in writers), return_exceptions=True)


@pytest.fixture
async def native(data_folder: Path) -> AsyncIterator[int]:
    """A Redis that speaks TLS itself and asks for a certificate, where one is installed. Its port."""
    program = program_with_tls()
    if program is None:
        pytest.skip("no redis-server with TLS on PATH")
    (port,) = free_ports(1)
    options = {**tls_settings(port), "save": ""}
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    flags += ["--bind", *ADDRESSES]
    process = ChildProcess(
        ProcessSpec(
            name="redis-tls",
            arguments=[program, *flags],
            log_path=data_folder / "redis.log",
            pid_path=data_folder / "redis.pid",
            working_folder=data_folder,
        )
    )
    process.start()
    await wait_until(lambda: answers(port), description="the server speaks TLS")
    yield port
    await process.kill()


async def answers(port: int) -> bool:
    client = open_redis(f"rediss://127.0.0.1:{port}?{TRUST}&{SHOWN}")
    try:
        return bool(await client.execute_command("PING"))
    except RedisConnectionError:
        return False
    finally:
        await client.aclose()


@pytest.fixture(params=["gate", "native"])
def port(request: pytest.FixtureRequest) -> int:
    found: int = request.getfixturevalue(request.param)
    return found


async def test_tasks_cancels_and_figures_go_over_tls(port: int) -> None:
    async with open_bench(f"rediss://127.0.0.1:{port}/0?{TRUST}&{SHOWN}") as bench:
        seen = Recorder()
        await bench.serve(seen)
        await bench.enqueue_many(500)
        await wait_until(lambda: len(seen.seen) == 500, description="all are handled")
        assert await Broker(bench.redis).publish_cancel("nobody") == 1  # heard over TLS too
        (queue,) = await Inspector(bench.redis).queues()
        await wait_until(lambda: bench.counter("processed"), description="results are written")
        assert queue.pending == 0
        await bench.enqueue("big", queue="other")
        await bench.redis.execute_command("SET", "large", b"x" * (1 << 20))  # more than one record of TLS
        assert len(await bench.redis.execute_command("GET", "large")) == 1 << 20


async def test_an_authority_nobody_vouched_for_is_not_trusted(port: int) -> None:
    await refused(f"rediss://127.0.0.1:{port}/0?{SHOWN}", "certificate verify failed")


async def test_a_server_that_wants_a_certificate_gets_one_or_nothing(port: int) -> None:
    await refused(f"rediss://127.0.0.1:{port}/0?{TRUST}", ".")


async def test_the_name_in_the_certificate_counts(port: int) -> None:
    await refused(f"rediss://127.0.0.2:{port}/0?{TRUST}&{SHOWN}", "IP address mismatch")


async def test_verification_can_be_given_up(port: int) -> None:
    client = open_redis(f"rediss://127.0.0.2:{port}/0?ssl_cert_reqs=none&{SHOWN}")
    assert await client.execute_command("PING")
    await client.aclose()


async def refused(url: str, says: str) -> None:
    client = open_redis(url)
    with pytest.raises(RedisConnectionError, match=says):
        await client.execute_command("PING")
    await client.aclose()
