"""The platform's users of docs/reference/redis-acl.example can do their work, and nothing else."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from tests.redis_servers import RedisFixture
from tests.redis_users import UrlOf, made_users, refusals, users_of
from tests.scenarios.platform import Platform, now_s
from tests.worker_process import WorkerProcess

import junhong_cmp
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import CardResting
from junhong_cmp.gateway.limits.change_gap import RedisChangeGap

SOURCES = Path(junhong_cmp.__file__).parent
PREFIX = "junhong-"
QUICK = {
    "JUNHONG_LEASE_TTL": "3s",
    "JUNHONG_LEASE_RENEW": "1s",
    "JUNHONG_LEASE_RETRY": "300ms",
    # After a flush nothing is claimed for as long as a poll might take.
    "JUNHONG_GATEWAY_TOTAL_TIMEOUT": "5s",
    "JUNHONG_POLLING_TURN_TIMEOUT": "6s",
}

pytestmark = pytest.mark.single_node("makes users on one server")


@pytest.fixture
async def url_of(redis_server: RedisFixture, redis_url: str) -> AsyncIterator[UrlOf]:
    """The URL for a user of the example."""
    async with made_users(redis_server, redis_url, PREFIX) as url_of:
        yield url_of


@pytest.fixture
async def platform(
    redis: Redis, pool: asyncpg.Pool, postgres_dsn: str, data_folder: Path, url_of: UrlOf
) -> AsyncIterator[Platform]:
    async with Platform(redis, url_of("worker"), pool, postgres_dsn, data_folder) as platform:
        await platform.poll_usage_every(1)
        yield platform


async def test_a_worker_of_each_role_and_an_operator_need_no_more(
    platform: Platform, redis_server: RedisFixture, url_of: UrlOf
) -> None:
    cards = await platform.issue_cards(50)
    workers = [
        await platform.launch({**platform.role_environment(role), **QUICK})
        for role in ("leader", "all", "consumer")
    ]
    for worker in workers:
        await worker.wait_started()
    await platform.all_polled(cards)
    leader = next(worker for worker in workers if worker.find("当选主节点"))
    assert await leader.stop() == 0
    standby = next(worker for worker in workers[:2] if worker is not leader)
    await standby.wait_for("当选主节点")
    await platform.redis.flushall()  # everything is made anew, the generation and the notices too
    await platform.all_polled(cards, since=now_s(), limit_s=90)  # first, polls it forgot of may have to end
    await platform.wait_for_firing("import_redrive")
    await platform.pool.execute("UPDATE carrier_account SET monthly_quota = 1000000")  # Redis counts it
    for words in (("status",), ("queue", "ls"), ("polling", "now", "--account", "demo"), ("account", "ls")):
        await run(words, {**platform.environment(), "JUNHONG_REDIS_URL": url_of("operator")})
    for worker in workers:
        if worker is not leader:
            assert await worker.stop() == 0
    assert await refusals(redis_server) == set()


def test_a_worker_may_do_whatever_its_scripts_do_with_all_its_keys() -> None:
    rules = users_of(PREFIX)["worker"]
    packages = ("polling", "leadership", "gateway")
    calls = re.compile(r"redis\.p?call\('(\w+)'")
    used = {word.lower() for text in texts_of(packages, "*.lua") for word in calls.findall(text)}
    assert used > {"zadd", "hset"}
    assert used <= {rule.removeprefix("+") for rule in rules}
    keys = re.compile(r'return f?"([a-z{:]+:)')
    named = {name for text in texts_of(packages, "keys.py") for name in keys.findall(text)}
    assert named > {"polling:", "gateway:change:"}
    allowed = tuple(rule[1:].rstrip("*") for rule in rules if rule.startswith("~"))
    assert all(name.startswith(allowed) or (name + "lease}:").startswith(allowed) for name in named)


def texts_of(packages: tuple[str, ...], pattern: str) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for package in packages
        for path in (SOURCES / package).rglob(pattern)
    ]


async def test_a_worker_may_space_the_changes_of_cards(url_of: UrlOf) -> None:
    client = open_redis(url_of("worker"))
    gap, card = RedisChangeGap(client), CardRef(1, "89860012345678900017")
    await gap.take(card, "op-1", timedelta(minutes=3))
    with pytest.raises(CardResting):
        await gap.take(card, "op-2", timedelta(minutes=3))
    await gap.give_back(card, "op-1")
    await gap.take(card, "op-2", timedelta(minutes=3))
    await client.aclose()


async def run(words: tuple[str, ...], environment: dict[str, str]) -> None:
    async with WorkerProcess(environment, arguments=words) as process:
        assert await process.wait_exit(timeout=30) == 0, process.log_text


@pytest.mark.parametrize("name", sorted(users_of(PREFIX)))
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",),
        ("CONFIG", "GET", "maxmemory"),
        ("KEYS", "*"),
        ("SUBSCRIBE", "other"),
        ("SET", "foreign", "1"),
        ("DEL", "{polling}:foreign"),
        ("EVAL", "return redis.call('DEL', 'foreign')", 0),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
async def test_no_user_can_do_more(url_of: UrlOf, name: str, command: tuple[str | int, ...]) -> None:
    client = open_redis(url_of(name))
    with pytest.raises(ResponseError, match=r"permission|ACL failure|can't access"):
        await client.execute_command(*command)
    await client.aclose()
