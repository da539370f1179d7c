import asyncio
import contextlib
import socket
from datetime import timedelta
from typing import Any, cast

import pytest
import uvloop
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.script_client import ScriptClient
from junhong_cmp.asynq.scripting import LuaScript

pytestmark = pytest.mark.single_node("a cluster client has no line")

ECHO = LuaScript("return ARGV[1]")
COUNT = LuaScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
BUSY = LuaScript("for _ = 1, tonumber(ARGV[1]) do redis.call('PING') end return ARGV[1]")


def open_client(url: str, **options: Any) -> ScriptClient:
    return cast(ScriptClient, open_redis(url, **options))


async def test_many_callers_share_one_connection_and_each_gets_its_own_reply(
    redis_url: str, redis: Redis
) -> None:
    client = open_client(redis_url, client_name="sharing")
    await ECHO.run(client, [], ["first"])
    replies = await asyncio.gather(*(ECHO.run(client, [], [str(number)]) for number in range(500)))
    assert replies == [str(number).encode() for number in range(500)]
    names = [one["name"] for one in await redis.client_list()]
    assert names.count("sharing") <= 2  # the line, and the connection that sent the script in full
    await client.aclose()


async def test_a_cancelled_caller_leaves_no_reply_to_the_next(redis_url: str) -> None:
    client = open_client(redis_url)
    await BUSY.run(client, [], [1])
    for _ in range(20):
        given_up = asyncio.create_task(BUSY.run(client, [], [2000]))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await ECHO.run(client, [], ["own"]) == b"own"
        assert (await asyncio.gather(given_up, return_exceptions=True))[0] is not None
    await client.aclose()


async def test_errors_are_those_of_the_ordinary_client(redis_url: str, redis: Redis) -> None:
    client = open_client(redis_url)
    await redis.set("bad", "x")
    with pytest.raises(ResponseError, match="not an integer"):
        await COUNT.run(client, ["bad"], [1])
    assert await COUNT.run(client, ["good"], [2]) == 2  # the line goes on
    await client.aclose()


async def test_a_line_found_closed_is_replaced(redis_url: str, redis: Redis) -> None:
    client = open_client(redis_url, client_name="doomed")
    await ECHO.run(client, [], ["x"])
    for one in await redis.client_list():
        if one["name"] == "doomed":
            await redis.client_kill_filter(_id=one["id"])
    await wait_until(lambda: client._line is not None and client._line.closed, description="the line notices")
    assert await ECHO.run(client, [], ["y"]) == b"y"
    await client.aclose()


async def test_all_that_wait_hear_of_a_lost_connection(redis_url: str, redis: Redis) -> None:
    client = open_client(redis_url, client_name="doomed")
    await ECHO.run(client, [], ["x"])
    assert client._line is not None
    waiting = [client._line.send(("BLPOP", "nothing", 0)) for _ in range(3)]
    await wait_until(lambda: _blocked(redis), description="the server holds the connection")
    await redis.client_kill_filter(_type="normal", skipme=True)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {RedisConnectionError}
    assert await ECHO.run(client, [], ["z"]) == b"z"
    await client.aclose()


async def _blocked(redis: Redis) -> bool:
    return bool((await redis.info("clients"))["blocked_clients"])


async def test_a_reply_that_does_not_come_in_time_ends_the_line(redis_url: str) -> None:
    client = open_client(redis_url, socket_timeout=timedelta(milliseconds=200))
    await ECHO.run(client, [], ["x"])
    line = client._line
    assert line is not None
    with pytest.raises(RedisTimeoutError):
        await line.send(("BLPOP", "nothing", 0))
    assert line.closed
    assert await ECHO.run(client, [], ["y"]) == b"y"
    await client.aclose()


async def test_a_demoted_primary_is_left(redis_url: str, redis: Redis) -> None:
    client = open_client(redis_url)
    await COUNT.run(client, ["n"], [1])
    await redis.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(ReadOnlyError):
            await COUNT.run(client, ["n"], [1])
        assert client._line is None or client._line.closed
    finally:
        await redis.replicaof("NO", "ONE")
    assert await COUNT.run(client, ["n"], [1]) == 2
    await client.aclose()


async def test_closing_closes_the_line(redis_url: str) -> None:
    client = open_client(redis_url)
    await ECHO.run(client, [], ["x"])
    line = client._line
    assert line is not None
    await client.aclose()
    with pytest.raises(RedisConnectionError):
        await line.send(("PING",))


async def test_what_is_no_redis_ends_the_line() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):  # one command, or some of the handshake
                writer.write(b"?garbage\r\n" if garbled.is_set() else b"+OK\r\n" * data.count(b"*"))
        writer.close()
        gone.set()

    gone = asyncio.Event()
    garbled = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0, family=socket.AF_INET)
    client = open_client(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", client_name="")
    try:
        assert await client.execute_command("EVALSHA", ECHO.sha1, 0) == b"OK"
        garbled.set()
        with pytest.raises(RedisConnectionError):
            await client.execute_command("EVALSHA", ECHO.sha1, 0)
    finally:
        await client.aclose()
        await gone.wait()
        server.close()
        await server.wait_closed()


def test_a_reset_nobody_was_told_of_yet_is_a_lost_connection(redis_url: str) -> None:
    """uvloop raises RuntimeError for writing there, which no caller takes for a fault of Redis."""

    async def write_after_reset() -> None:
        client = open_client(redis_url)
        await ECHO.run(client, [], ["first"])
        line = client._line
        assert line is not None
        line._transport.abort()
        with pytest.raises(RedisConnectionError):
            await line.send(("PING",))
        assert await ECHO.run(client, [], ["second"]) == b"second"
        await client.aclose()

    uvloop.run(write_after_reset())


def test_an_ordinary_connection_reset_a_moment_ago_is_a_lost_connection(redis_url: str) -> None:
    async def write_after_reset() -> None:
        client: Any = open_client(redis_url)
        connection = await client.connection_pool.get_connection()
        connection._writer.transport.abort()
        with pytest.raises(RedisConnectionError):
            await connection.send_command("PING")
        await client.connection_pool.release(connection)
        await client.aclose()

    uvloop.run(write_after_reset())
