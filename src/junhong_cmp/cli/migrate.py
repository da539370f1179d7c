"""``junhong migrate``: bring the database to the schema this program needs."""

import asyncio

import typer

from junhong_cmp import config
from junhong_cmp.cli.options import ConfigFile, PostgresDsn
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.errors import DependencyUnavailableError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("migrate", cls=ChineseCommand, help="把数据库结构更新到本程序需要的版本")(migrate)


def migrate(config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None) -> None:
    """Apply what is missing; say from which version to which."""
    settings = config.load(flags={"config": config_file, "postgres.dsn": postgres_dsn}).postgres
    from asyncpg import PostgresError  # noqa: PLC0415 - heavy, and a wrong configuration must not wait for it

    from junhong_cmp.db import migrate as migrations  # noqa: PLC0415

    try:
        report = asyncio.run(migrations.migrate(settings.dsn.get_secret_value()))
    except (OSError, PostgresError) as error:
        raise DependencyUnavailableError(
            f"无法更新数据库结构（{type(error).__name__}），请检查 JUNHONG_POSTGRES_DSN 与库的权限"
        ) from error
    if report.changed:
        typer.echo(f"数据库结构已更新：{report.from_version or '空库'} → {report.to_version}")
    else:
        typer.echo(f"数据库结构已是所需版本：{report.to_version}")
