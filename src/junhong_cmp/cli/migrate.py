"""``junhong migrate``: bring the database to the schema this program needs."""

import asyncio

import typer

from junhong_cmp.cli.options import ConfigFile, PostgresDsn
from junhong_cmp.cli.settings import Service, load_settings
from junhong_cmp.cli.usage import ChineseCommand


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("migrate", cls=ChineseCommand, help="把数据库结构更新到本程序需要的版本")(migrate)


def migrate(config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None) -> None:
    """Apply what is missing; say from which version to which."""
    settings = load_settings(
        {"config": config_file, "postgres.dsn": postgres_dsn}, without=Service.REDIS
    ).postgres
    from junhong_cmp.cli.service_errors import explained  # noqa: PLC0415 - a wrong configuration must not wait
    from junhong_cmp.db import migrate as migrations  # noqa: PLC0415 - as above

    with explained("无法更新数据库结构"):
        report = asyncio.run(migrations.migrate(settings.dsn.get_secret_value()))
    if report.changed:
        typer.echo(f"数据库结构已更新：{report.from_version or '空库'} → {report.to_version}")
    else:
        typer.echo(f"数据库结构已是所需版本：{report.to_version}")
