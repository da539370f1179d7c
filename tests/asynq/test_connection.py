import asyncio
import socket
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from junhong_cmp.asynq.connection import RedisOptions, RedisUrlError, open_blocking_redis, open_redis
from junhong_cmp.asynq.redis_url import TlsOptions


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h", {"kind": "single", "nodes": (("h", 6379),), "db": 0, "tls": None}),
        ("redis://:p%40w@h:7000/3", {"nodes": (("h", 7000),), "db": 3, "username": None, "password": "p@w"}),
        ("redis://u:pw@[::1]:7000?db=2", {"nodes": (("::1", 7000),), "db": 2, "username": "u"}),
        ("rediss://h", {"kind": "single", "tls": TlsOptions()}),
        ("redis-socket:///run/r.sock?db=4", {"kind": "socket", "path": "/run/r.sock", "db": 4}),
        ("unix:///run/r.sock", {"kind": "socket", "path": "/run/r.sock", "db": 0}),
        (
            "redis-sentinel://:spw@a,b:1/2?master=m&password=pw",
            {
                "kind": "sentinel",
                "nodes": (("a", 26379), ("b", 1)),
                "db": 2,
                "master": "m",
                "password": "pw",
                "sentinel_password": "spw",
            },
        ),
        (
            "redis-cluster://u:pw@a:1,b:2?tls=true",
            {
                "kind": "cluster",
                "nodes": (("a", 1), ("b", 2)),
                "username": "u",
                "password": "pw",
                "tls": TlsOptions(),
            },
        ),
    ],
)
def test_forms_of_the_url(url: str, expected: dict[str, Any]) -> None:
    options = RedisOptions.parse(url)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://:canary@h", "协议只能为"),
        ("canary", "协议只能为"),
        ("redis://:canary@", "缺少主机名"),
        ("redis://:canary@h:port", "端口必须是"),
        ("redis://:canary@h:99999", "端口必须是"),
        ("redis://:canary@h/x", "库号必须是非负整数"),
        ("redis://:canary@h/-1", "库号必须是非负整数"),
        ("redis://:canary@a,b", "只能有一个主机"),
        ("redis://:canary@[::1", "无法解析|端口必须是"),
        ("redis-socket://canary", "缺少路径"),
        ("redis-socket:canary", "绝对路径"),
        ("redis-sentinel://:canary@a", "缺少 \\?master="),
        ("redis-cluster://:canary@a/1", "只有 0 号库"),
    ],
)
def test_a_bad_url_is_explained_without_its_secrets(url: str, says: str) -> None:
    with pytest.raises(RedisUrlError, match=says) as caught:
        open_redis(url)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_options_print_without_password() -> None:
    assert repr(RedisOptions.parse("redis://u:canary@h/1")) == "RedisOptions(single h:6379 db=1)"


@pytest.mark.single_node("a cluster has connections to each node")
async def test_a_client_talks_bytes(redis_url: str) -> None:
    client = open_redis(redis_url, client_name="tester")
    assert await client.execute_command("SET", "k", "v")
    assert await client.execute_command("GET", "k") == b"v"
    assert await client.execute_command("CLIENT", "GETNAME") in {b"tester", "tester"}
    await client.aclose()


@pytest.mark.single_node("a cluster has connections to each node")
async def test_a_client_never_repeats_a_command(redis_url: str, redis: Redis) -> None:
    client: Any = open_redis(redis_url)
    assert client.get_retry().get_retries() == 0
    client_id = await client.execute_command("CLIENT", "ID")
    await redis.client_kill_filter(_id=client_id)
    await client.execute_command("PING")  # a connection found closed is replaced before anything is sent
    await client.aclose()


@pytest.mark.single_node("a cluster has connections to each node")
async def test_a_blocking_client_waits_longer_than_any_timeout(redis_url: str) -> None:
    client: Any = open_blocking_redis(redis_url)
    assert client.connection_pool.connection_kwargs["socket_timeout"] is None
    assert await client.execute_command("BLMOVE", "a", "a", "RIGHT", "RIGHT", 0.05) is None
    await client.aclose()


async def test_a_burst_waits_for_the_pool(redis_url: str) -> None:
    client = open_redis(redis_url, pool_size=2)
    replies = await asyncio.gather(*(client.execute_command("GET", "k") for _ in range(50)))
    assert len(replies) == 50

    async def ask() -> int:
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("GET", "k")
        return len(await pipe.execute())

    assert sum(await asyncio.gather(*(ask() for _ in range(50)))) == 50
    await client.aclose()


async def test_a_burst_may_be_the_first_thing_a_client_does(redis_url: str) -> None:
    for _ in range(10):
        client = open_redis(redis_url)
        await asyncio.gather(*(client.execute_command("GET", f"k{number}") for number in range(30)))
        await client.aclose()


@pytest.mark.parametrize(
    "form",
    [
        "redis://{host}",
        "rediss://{host}",
        "redis-sentinel://{host}?master=m",
        "redis-cluster://{host}",
    ],
)
async def test_nothing_is_connected_on_opening(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port: int = server.getsockname()[1]
        client = open_redis(form.format(host=f"127.0.0.1:{port}"))
        await client.aclose()
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_a_missing_socket_is_an_error_of_redis() -> None:
    client = open_redis("redis-socket:///nowhere/r.sock")
    with pytest.raises(RedisConnectionError):
        await client.execute_command("PING")
    await client.aclose()


async def test_a_cluster_client_repeats_nothing_either() -> None:
    client = open_redis("redis-cluster://192.0.2.1:7000")
    assert isinstance(client, RedisCluster)
    assert client.retry.get_retries() == 0
    await client.aclose()
