"""What an error of Redis or PostgreSQL means: a wrong configuration, or a service that is not there now."""

from typing import Final

import asyncpg
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException, RedisError

from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.errors import ConfigError

SERVICE_ERRORS: Final[tuple[type[Exception], ...]] = (
    *DATABASE_FAULTS,  # OSError among them: refused, reset, no such socket, timed out
    RedisError,
    RedisClusterException,  # no subclass of RedisError
)
"""All that connecting to a service and talking to it may raise."""

# The credentials are wrong: waiting would not make them right.
_REFUSED: Final = (
    AuthenticationError,
    NoPermissionError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
# No credentials were given, wrong ones, or some to a server that knows none.
_REFUSAL_SIGNS: Final = ("NOAUTH", "username-password pair", "AUTH <password> called without")


def configuration_fault(service: str, error: BaseException) -> ConfigError | None:
    """Return what the operator must correct, or None when ``error`` is an outage that may pass."""
    if isinstance(error, asyncpg.exceptions.ClientConfigurationError):
        return ConfigError([f"{service} 的连接串无效（{reason_of(error)}）；junhong config 显示它来自哪里"])
    if isinstance(error, _REFUSED) or _is_refusal(error):
        return ConfigError([f"{service} 拒绝登录（{reason_of(error)}），请检查连接地址中的账号与密码"])
    return None


def reason_of(error: BaseException) -> str:
    """Return the error's class and its text, if it has one."""
    text = str(error).strip()
    return f"{type(error).__name__}：{text}" if text else type(error).__name__


def _is_refusal(error: BaseException) -> bool:
    """Tell a refused login from an outage where redis-py has no class of its own for it."""
    return isinstance(error, RedisError) and any(sign in str(error) for sign in _REFUSAL_SIGNS)
