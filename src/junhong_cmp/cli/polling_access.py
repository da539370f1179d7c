"""What the polling commands share: the services they work on, and how a refusal is told."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from pathlib import Path
from typing import TypeVar

import typer

from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.database import open_configured_pool
from junhong_cmp.cli.inspection import REFUSED
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.cli.settings import Service, load_settings
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.schema import check_schema
from junhong_cmp.polling.errors import InvalidSnapshotError
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rule_editor import RuleRefusedError
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class PollingAccess:
    """How to reach PostgreSQL, and Redis where that is needed; each opened for one piece of work."""

    config_file: Path | None
    postgres_dsn: str | None
    redis_url: str | None = None

    def run(self, action: str, work: Callable[[Conn], Awaitable[_Result]]) -> _Result:
        """Do ``work`` with a connection to PostgreSQL; a refusal ends the command.

        Raises:
            ConfigError, SchemaOutdatedError: the configuration or the schema is not fit.
            DependencyUnavailableError: PostgreSQL does not answer.
            typer.Exit: refused, and the user has been told why.

        """

        async def with_connection(pool: Pool, _settings: Settings) -> _Result:
            async with pool.acquire() as conn:
                return await work(conn)

        return self._run(action, with_connection, without=Service.REDIS)

    def run_with_queue(
        self, action: str, work: Callable[[Pool, RedisClient, PollingQueueManager], Awaitable[_Result]]
    ) -> _Result:
        """Do ``work`` with the pool, Redis and the shards; raises as :meth:`run` does, for Redis too."""

        async def with_queue(pool: Pool, settings: Settings) -> _Result:
            async with AsyncExitStack() as stack:
                redis = open_redis(settings.redis.url.get_secret_value(), pool_size=2)
                stack.push_async_callback(redis.aclose)
                shards = settings.polling.shards_per_account
                queue = PollingQueueManager(redis, shards_per_account=shards)
                stack.push_async_callback(queue.close)
                return await work(pool, redis, queue)

        return self.run_with_settings(action, with_queue)

    def run_with_settings(self, action: str, work: Callable[[Pool, Settings], Awaitable[_Result]]) -> _Result:
        """Do ``work`` with the pool and what else is configured; raises as :meth:`run` does."""
        return self._run(action, work)

    def _run(
        self,
        action: str,
        work: Callable[[Pool, Settings], Awaitable[_Result]],
        *,
        without: Service | None = None,
    ) -> _Result:
        settings = load_settings(
            {
                "config": self.config_file,
                "postgres.dsn": self.postgres_dsn,
                "redis.url": self.redis_url,
            },
            without=without,
        )
        try:
            with explained(action):
                return asyncio.run(_with_pool(settings, work))
        except (InvalidSnapshotError, RuleRefusedError) as error:
            typer.echo(f"错误：{action}：{error}", err=True)
            raise typer.Exit(REFUSED) from error


async def _with_pool(settings: Settings, work: Callable[[Pool, Settings], Awaitable[_Result]]) -> _Result:
    async with await open_configured_pool(settings.postgres) as pool:
        async with pool.acquire() as conn:
            await check_schema(conn)
        return await work(pool, settings)


async def account_named(conn: Conn, code: str) -> CarrierAccount:
    """Return the account of this code.

    Raises:
        RuleRefusedError: there is none; the text names those there are.

    """
    accounts = await list_accounts(conn)
    for account in accounts:
        if account.code == code:
            return account
    known = "、".join(account.code for account in accounts[:20]) or "无"
    raise RuleRefusedError(f"账号 {code} 不存在，现有账号：{known}")


def parse_task_type(text: str) -> TaskType:
    """Return the polling task type a user named by its short or its full name."""
    for task_type in POLLING_TASK_TYPES:
        if text in {task_type.kind, task_type.value}:
            return task_type
    raise typer.BadParameter(
        f"任务类型只能为 {'、'.join(task_type.kind for task_type in POLLING_TASK_TYPES)}"
    )


def until_text(until: datetime) -> str:
    """Return the end of a pause for people."""
    if until.year >= MAXYEAR:
        return "人工恢复为止"
    return f"{until.astimezone():%Y-%m-%d %H:%M:%S} 为止"


def later(seconds: float) -> datetime:
    """Return the instant so many seconds from now."""
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() + seconds, UTC)
