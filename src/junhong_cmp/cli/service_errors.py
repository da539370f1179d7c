"""What a command tells its user when Redis or PostgreSQL cannot do their part."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from redis.exceptions import RedisClusterException, RedisError

from junhong_cmp.asynq.client import BulkEnqueueError
from junhong_cmp.asynq.connection import RedisUrlError
from junhong_cmp.errors import ConfigError, DependencyUnavailableError, JunhongError
from junhong_cmp.logs import SecretMask
from junhong_cmp.worker.service_faults import SERVICE_ERRORS, configuration_fault, reason_of


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Raise what services raise as one sentence for the user; ``action`` is what could not be done.

    Raises:
        ConfigError: an address is malformed, or a service refuses the login.
        DependencyUnavailableError: a service does not answer, or does not do what it was asked.

    """
    try:
        yield
    except RedisUrlError as error:
        raise ConfigError([f"JUNHONG_REDIS_URL 无效：{error}"]) from error
    except BulkEnqueueError as error:
        raise _fault(action, _first_of(error)) from error
    except SERVICE_ERRORS as error:
        raise _fault(action, error) from error


def _fault(action: str, error: BaseException) -> JunhongError:
    service, variables = _service_of(error)
    if (fault := configuration_fault(service, error)) is not None:
        return fault
    reason = SecretMask().text(reason_of(error))
    return DependencyUnavailableError(
        f"{action}：{service} 无法访问或拒绝了请求（{reason}），请检查 {variables} 与服务"
    )


def _first_of(error: BulkEnqueueError) -> BaseException:
    """Return what the first task that failed has failed of."""
    return next(outcome for outcome in error.outcomes if isinstance(outcome, Exception))


def _service_of(error: BaseException) -> tuple[str, str]:
    if isinstance(error, RedisError | RedisClusterException):
        return "Redis", "JUNHONG_REDIS_URL"
    if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError) or not isinstance(
        error, TimeoutError
    ):
        return "PostgreSQL", "JUNHONG_POSTGRES_DSN"  # redis-py wraps the socket's errors, asyncpg does not
    return "Redis 或 PostgreSQL", "JUNHONG_REDIS_URL、JUNHONG_POSTGRES_DSN"
