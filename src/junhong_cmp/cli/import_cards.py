"""``junhong import``: hand a card file in, watch it being imported, and say what became of it."""

from pathlib import Path
from typing import Annotated

import typer

from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.settings import load_settings
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.config import Settings
from junhong_cmp.errors import ConfigError

File = Annotated[Path, typer.Argument(metavar="FILE", help="卡清单 CSV（UTF-8、GB18030 或带 BOM 的 UTF-16）")]
Account = Annotated[str, typer.Option("--account", "-a", metavar="CODE", help="导入到哪个运营商账号（编码）")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="等待导入结束（默认），或只交付任务")]
ResultCopy = Annotated[
    Path | None, typer.Option("--result", metavar="文件", help="把结果文件另存到此路径", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("import", cls=ChineseCommand, help="导入卡清单文件，并显示进度与结果")(import_cards)


def import_cards(
    *,
    file: File,
    account: Account,
    wait: Wait = True,
    result: ResultCopy = None,
    as_json: AsJson = False,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Import FILE for the account CODE; a worker does the work, this command watches."""
    flags = {"config": config_file, "redis.url": redis_url, "postgres.dsn": postgres_dsn}
    settings = load_settings(flags)
    _require_shared_storage(settings)
    from junhong_cmp.cli.import_run import (  # noqa: PLC0415 - a wrong configuration must not wait for it
        ImportOrder,
        run_import,
    )

    order = ImportOrder(file=file, account_code=account, wait=wait, result_copy=result, as_json=as_json)
    # Not typer.Exit: its 130 is taken for a Ctrl-C that nobody answered.
    raise SystemExit(run_import(settings, order))


def _require_shared_storage(settings: Settings) -> None:
    url = settings.storage.url
    if url is None:
        raise ConfigError(["JUNHONG_STORAGE_URL 未设置：导入文件须放在本命令与 Worker 都能访问的存储中"])
    if url.get_secret_value().startswith("memory:"):
        raise ConfigError(["JUNHONG_STORAGE_URL 为 memory://，Worker 看不到：请用 file:// 或 s3://"])
