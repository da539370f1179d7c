"""``junhong polling``: pause and resume, poll now, and the rules."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.account_cards import stream_account_cards
from junhong_cmp.cli import polling_pauses, polling_rules
from junhong_cmp.cli.card_choice import NumberFile, Numbers, cards_with, chosen_numbers
from junhong_cmp.cli.held_claims import held_text
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.polling_access import PollingAccess, account_named, later, parse_task_type, until_text
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.config.values import parse_duration
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.config import build_snapshot
from junhong_cmp.polling.config_store import load_config
from junhong_cmp.polling.hold_notice import held_for
from junhong_cmp.polling.pause_store import pause_polling, resume_polling
from junhong_cmp.polling.poll_now import NowReport, PollNow
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

AccountCode = Annotated[str, typer.Argument(metavar="账号", help="运营商账号的代码")]
TypeOption = Annotated[
    TaskType | None,
    typer.Option(
        "--type",
        "-t",
        metavar="类型",
        parser=parse_task_type,
        help="只针对一种轮询：carddata、cardstatus、realname",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    for name, explanation, command in (
        ("pause", "暂停一个账号的轮询，或其中一种轮询", pause),
        ("resume", "恢复暂停的轮询", resume),
        ("now", "让卡立即到期，由主节点在账号限额内轮询", poll_now),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    polling_pauses.register(group)
    polling_rules.register(group)
    app.add_typer(group, name="polling", help="轮询：暂停、恢复、立即轮询与轮询规则")


def parse_length(text: str) -> timedelta:
    """Return a length of time a user gave, which must be more than nothing."""
    try:
        length: timedelta = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if not timedelta(0) < length <= timedelta(days=3650):
        raise typer.BadParameter("须大于 0 且不超过 3650 天")
    return length


def pause(
    account: AccountCode,
    task_type: TypeOption = None,
    length: Annotated[
        timedelta | None,
        typer.Option(
            "--for", metavar="时长", parser=parse_length, help="多久后自动恢复，如 1h；不给则直到人工恢复"
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="原因", help="暂停的原因")] = "",
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Pause an account or one of its task types; a longer pause in force stays."""
    until = None if length is None else later(length.total_seconds())

    async def work(conn: Conn) -> str:
        found = await account_named(conn, account)
        return until_text(await pause_polling(conn, found.id, task_type, until, reason))

    end = PollingAccess(config_file, postgres_dsn).run("无法暂停轮询", work)
    typer.echo(f"已暂停：账号 {account}{_of(task_type)}，到{end}")


def resume(
    account: AccountCode,
    task_type: TypeOption = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """End a pause, be it an operator's or the carrier's; other types' pauses stay."""

    async def work(conn: Conn) -> bool:
        return await resume_polling(conn, (await account_named(conn, account)).id, task_type)

    if PollingAccess(config_file, postgres_dsn).run("无法恢复轮询", work):
        typer.echo(f"已恢复：账号 {account}{_of(task_type)}")
    else:
        typer.echo(f"没有生效中的暂停：账号 {account}{_of(task_type)}")


def poll_now(
    numbers: Numbers = None,
    *,
    file: NumberFile = None,
    account: Annotated[
        str | None, typer.Option("--account", "-a", metavar="账号", help="该账号的全部卡")
    ] = None,
    task_type: TypeOption = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make cards due now."""
    chosen_cards = _chosen_cards(numbers, file, account)
    task_types = POLLING_TASK_TYPES if task_type is None else (task_type,)

    async def work(
        pool: Pool, redis: RedisClient, queue: PollingQueueManager
    ) -> tuple[NowReport, timedelta | None]:
        async with pool.acquire() as conn:
            stored = await load_config(conn)
            chosen = None if account is None else await account_named(conn, account)
            cards = await cards_with(conn, chosen_cards)
        snapshot = build_snapshot(stored.version, stored.rows, stored.accounts, stored.type_pauses)
        now = PollNow(queue, snapshot, task_types)
        if chosen is None:
            await now.hasten(cards)
        else:
            async for cards in stream_account_cards(pool, chosen.id):
                await now.hasten(cards)
        return now.report, await held_for(redis)

    report, held = PollingAccess(config_file, postgres_dsn, redis_url).run_with_queue("无法立即轮询", work)
    if as_json:
        print_json({**asdict(report), "claims_held_s": None if held is None else held.total_seconds()})
        return
    _tell(report)
    if held is not None:
        typer.echo(held_text(held))


def _chosen_cards(numbers: list[str] | None, file: str | None, account: str | None) -> list[str]:
    """Return the numbers a user named; none where all cards of an account are meant."""
    if account is None:
        if not numbers and file is None:
            raise typer.BadParameter("给出卡号，或用 --file 给出存放卡号的文件，或用 --account 给出账号")
        return chosen_numbers(numbers, file)
    if numbers or file is not None:
        raise typer.BadParameter("--account 不与卡号或 --file 同用")
    return []


def _tell(report: NowReport) -> None:
    typer.echo(
        f"立即到期的轮询 {report.hastened} 次，正在进行或片刻后自会到期 {report.under_way} 次，"
        f"不轮询的卡 {report.not_polled} 张"
    )
    if report.resting:
        typer.echo(
            f"其中 {report.resting} 次的账号或类型正在暂停，恢复后才会轮询；junhong polling pauses 列出暂停"
        )


def _of(task_type: TaskType | None) -> str:
    return "" if task_type is None else f" 的 {task_type.kind}"
