"""``junhong config``: the effective settings, secrets masked, each with where it came from."""

import orjson
import typer

from junhong_cmp import config
from junhong_cmp.cli.options import AsJson, ConfigFile
from junhong_cmp.cli.usage import ChineseCommand


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("config", cls=ChineseCommand, help="显示生效的配置及其来源（密钥打码）")(show_config)


def show_config(config_file: ConfigFile = None, as_json: AsJson = False) -> None:
    """Print every setting with its origin; a wrong configuration is an error as it is for a worker."""
    resolution = config.resolve(flags={"config": config_file})
    if as_json:
        rows = [
            {"variable": item.variable, "path": item.path, "value": item.shown, "origin": item.origin}
            for item in resolution.values
        ]
        typer.echo(
            orjson.dumps({"settings": rows, "warnings": resolution.warnings}, option=orjson.OPT_INDENT_2)
        )
        return
    _print_table(resolution)


def _print_table(resolution: config.Resolution) -> None:
    from rich.markup import escape  # noqa: PLC0415 - only a table needs it
    from rich.table import Table  # noqa: PLC0415 - as above

    from junhong_cmp.cli.tables import open_console  # noqa: PLC0415 - as above

    table = Table("变量", "值", "来源", "说明", header_style="bold")
    for item in resolution.values:
        style = "dim" if item.origin == "默认值" else ""
        table.add_row(item.variable, escape(item.shown), escape(item.origin), item.description, style=style)
    for column in table.columns:
        column.overflow = "fold"  # a value cut off can't be checked
    table.columns[0].no_wrap = True
    open_console().print(table)
    for warning in resolution.warnings:
        typer.echo(f"注意：{warning}", err=True)
