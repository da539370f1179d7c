"""``junhong worker``: run one worker process."""

import os
from typing import Annotated

import structlog
import typer

from junhong_cmp import config, logs
from junhong_cmp.cli.options import ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.errors import ConfigError
from junhong_cmp.leadership.lease import UNNAMED

log = structlog.stdlib.get_logger(__name__)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("worker", cls=ChineseCommand, help="运行一个 Worker 进程")(worker)


def worker(
    ctx: typer.Context,
    role: Annotated[
        str | None,
        typer.Option("--role", metavar="角色", help="运行角色：all、leader、consumer", show_default=False),
    ] = None,
    instance_name: Annotated[
        str | None,
        typer.Option("--instance-name", metavar="名称", help="实例名称，只用于展示", show_default=False),
    ] = None,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Load the configuration, set the log up, and only then import and run what is heavy."""
    signals = ctx.ensure_object(StopSignals)
    resolution = _resolve(
        {
            "worker.role": role,
            "worker.instance_name": instance_name,
            "redis.url": redis_url,
            "postgres.dsn": postgres_dsn,
            "config": config_file,
        }
    )
    settings = resolution.settings
    logs.configure(
        level=settings.log.level,
        fmt=settings.log.format,
        context={"role": settings.worker.role.value, "instance": settings.worker.instance_name or UNNAMED},
        secrets=resolution.secrets,
    )
    resolution.report_oddities()

    from junhong_cmp.worker.run import run_worker  # noqa: PLC0415 - a wrong configuration must not wait for it

    raise typer.Exit(run_worker(settings, signals))


def _resolve(flags: dict[str, object]) -> config.Resolution:
    try:
        return config.resolve(flags=flags)
    except ConfigError as error:
        logs.configure(fmt=_wished_log_format())
        for problem in error.problems:
            log.error("配置错误", problem=problem)  # noqa: TRY400 - a traceback says nothing to the operator
        raise typer.Exit(int(error.exit_code)) from None


def _wished_log_format() -> logs.LogFormat:
    wished = os.environ.get("JUNHONG_LOG_FORMAT", "")
    return logs.LogFormat(wished) if wished in list(logs.LogFormat) else logs.LogFormat.AUTO
