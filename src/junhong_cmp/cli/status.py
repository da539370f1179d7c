"""``junhong status``: what the fleet is doing now."""

import asyncio
from datetime import timedelta

import orjson
import typer

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cli.database import open_configured_pool
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.cli.settings import load_settings
from junhong_cmp.cli.status_report import Status, StatusReader
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.config import Settings
from junhong_cmp.db.schema import check_schema

READ_LIMIT = timedelta(seconds=15)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("status", cls=ChineseCommand, help="显示实例、队列、分片、近一两分钟的轮询与导入任务")(
        show_status
    )


def show_status(
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Read the state once and print it."""
    flags = {"config": config_file, "redis.url": redis_url, "postgres.dsn": postgres_dsn}
    status = asyncio.run(_read(load_settings(flags)))
    if as_json:
        typer.echo(orjson.dumps(status.as_json(), option=orjson.OPT_INDENT_2).decode())
        return
    from junhong_cmp.cli.status_tables import print_status  # noqa: PLC0415 - JSON needs no tables

    print_status(status)


async def _read(settings: Settings) -> Status:
    with explained("无法读取状态"):
        async with asyncio.timeout(READ_LIMIT.total_seconds()):
            return await _collect(settings)


async def _collect(settings: Settings) -> Status:
    redis = open_redis(settings.redis.url.get_secret_value(), pool_size=4)
    try:
        async with await open_configured_pool(settings.postgres) as pool:
            async with pool.acquire() as conn:
                await check_schema(conn)
            reader = StatusReader(redis, pool, shards_per_account=settings.polling.shards_per_account)
            try:
                return await reader.read()
            finally:
                await reader.close()
    finally:
        await redis.aclose()
