"""Arguments and options that the commands about plans, pools and thresholds share."""

from typing import Annotated, Final

import typer

_MAX_NAME: Final = 100


def parse_name(text: str) -> str:
    """Return the name of a plan or pool a user gave."""
    if not text.strip() or not text.isprintable() or len(text) > _MAX_NAME:
        raise typer.BadParameter(f"须为 1 到 {_MAX_NAME} 个字符，不含换行")
    return text


AccountCode = Annotated[str, typer.Argument(metavar="账号", help="运营商账号的代码")]
PlanName = Annotated[str, typer.Argument(metavar="套餐", parser=parse_name, help="卡上所写的套餐名")]
PoolName = Annotated[str, typer.Argument(metavar="流量池", parser=parse_name, help="流量池的名称")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="只校验并显示结果，不改动")]
