"""What is dangerous about the Redis a worker was given; said once at start, never a reason not to start."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

import structlog
from redis.exceptions import RedisError

from junhong_cmp.asynq.connection import RedisClient

log = structlog.stdlib.get_logger(__name__)

SAFE_POLICY: Final = "noeviction"
_NETWORK_SCHEMES: Final = ("redis", "rediss")


async def check_redis(redis: RedisClient, url: str) -> None:
    """Warn of a server that may evict keys, and of one that anybody in the network may use."""
    if is_open_to_the_network(url):
        log.warning("Redis 不在本机且未设密码，网络内任何人都可读写队列")
    try:
        info = await redis.execute_command("INFO", "memory")
    except RedisError as error:
        log.warning("无法检查 Redis 的内存淘汰策略", error=type(error).__name__)
        return
    policy = _policy_of(info)
    if policy and policy != SAFE_POLICY:
        log.warning("Redis 的内存淘汰策略可能丢失任务与卡，应设为 noeviction", policy=policy)


def is_open_to_the_network(url: str) -> bool:
    """Tell whether ``url`` leads over a network to a server that asks for no password."""
    parts = urlsplit(url) if "," not in url else None
    if parts is None or parts.scheme not in _NETWORK_SCHEMES or parts.password:
        return False
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host not in ("", "localhost")


def _policy_of(info: object) -> str:
    if isinstance(info, dict):  # redis-py parses INFO of a single server, and gives one a node in a cluster
        found = info.get("maxmemory_policy", "")
        return found.decode() if isinstance(found, bytes) else str(found)
    return ""
