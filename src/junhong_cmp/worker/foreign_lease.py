"""A lease that another process holds, when this one may not stand by for it."""

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.config import LeaseMode, Settings
from junhong_cmp.errors import ConfigError
from junhong_cmp.leadership.lease import UNNAMED, LeaseRecord
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.worker.roles import SCHEDULING_ROLES


async def refuse_foreign_lease(redis: RedisClient, settings: Settings) -> None:
    """Make sure that a process which decides by itself that it leads does not meet one that holds the lease.

    Raises:
        ConfigError: it would.

    """
    if settings.worker.role not in SCHEDULING_ROLES or settings.lease.mode is not LeaseMode.OFF:
        return
    lease = (await LeaseStore(redis).read()).lease
    if lease.alive:
        raise foreign_lease(lease)


def foreign_lease(lease: LeaseRecord) -> ConfigError:
    """Return what the operator is told: who leads, and what can be done."""
    problem = (
        f"已有主节点：实例名称={lease.name or UNNAMED}，主机={lease.host}，进程={lease.pid}，"
        f"自 {lease.led_since:%Y-%m-%d %H:%M:%S} UTC；请将本实例改为 consumer，"
        "或设 JUNHONG_LEASE_MODE=on 且 JUNHONG_LEASE_ON_CONFLICT=standby 作为热备"
    )
    return ConfigError([problem])
