"""``junhong account``: carrier accounts listed, shown, made and changed; pauses ended."""

from typing import Annotated

import typer

from junhong_cmp.cli import account_change
from junhong_cmp.cli.account_overview import AccountOverview, load_overviews
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.up_pauses import reason_text
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.pause_store import resume_polling

AccountCode = Annotated[str, typer.Argument(metavar="账号", help="运营商账号的代码")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    group.command(
        "ls",
        cls=ChineseCommand,
        help="列出账号：驱动、速率（因限流下调时为 实际/所设）、配额余量、暂停、卡数",
    )(list_all)
    group.command("show", cls=ChineseCommand, help="显示一个账号的全部设置、配额余量与卡的状态")(show)
    account_change.register(group)
    group.command("resume", cls=ChineseCommand, help="结束账号的暂停，不论由谁引起")(resume)
    app.add_typer(group, name="account", help="运营商账号：查看、新建、修改、恢复")


def list_all(
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print one row an account."""
    overviews = _load(PollingAccess(config_file, postgres_dsn, redis_url), None)
    if as_json:
        print_json([overview.as_json() for overview in overviews])
    elif overviews:
        from junhong_cmp.cli.account_screen import print_accounts  # noqa: PLC0415 - JSON needs no tables

        print_accounts(overviews)
    else:
        typer.echo("没有账号，用 junhong account add 新建")


def show(
    account: AccountCode,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print all there is about one account."""
    (overview,) = _load(PollingAccess(config_file, postgres_dsn, redis_url), account)
    if as_json:
        print_json(overview.as_json())
        return
    from junhong_cmp.cli.account_screen import print_account  # noqa: PLC0415 - as above

    print_account(overview)


def resume(account: AccountCode, config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None) -> None:
    """End the pause of an account, and say what it was for."""

    async def work(conn: Conn) -> str | None:
        found = await account_named(conn, account)
        if not await resume_polling(conn, found.id, None):
            return None
        return reason_text(found.pause_reason or "")

    reason = PollingAccess(config_file, postgres_dsn).run("无法恢复账号", work)
    if reason is None:
        typer.echo(f"没有生效中的暂停：账号 {account}")
    else:
        typer.echo(f"已恢复：账号 {account}" + (f"，原因曾为 {reason}" if reason else ""))


def _load(access: PollingAccess, code: str | None) -> list[AccountOverview]:
    async def work(pool: Pool, settings: Settings) -> tuple[list[AccountOverview], bool]:
        if code is not None:
            async with pool.acquire() as conn:
                await account_named(conn, code)
        return await load_overviews(pool, settings, code)

    overviews, is_complete = access.run_with_settings("无法读取账号", work)
    if not is_complete:
        typer.echo("警告：Redis 无法访问，配额余量与实际速率未知，请检查 JUNHONG_REDIS_URL 与服务", err=True)
    return overviews
