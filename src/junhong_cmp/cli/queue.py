"""``junhong queue``: look into the task queues, pause, delete and repair them."""

from dataclasses import asdict
from typing import Annotated

import typer

from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_check import CheckReport
from junhong_cmp.asynq.inspector_errors import QueuePauseError
from junhong_cmp.asynq.inspector_types import DailyStats, GroupInfo, QueueInfo
from junhong_cmp.cli.inspection import REFUSED, Access, print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, RedisUrl
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup

QueueName = Annotated[str, typer.Argument(metavar="队列", help="队列名")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    for name, explanation, command in (
        ("ls", "列出所有队列及各状态的任务数", list_queues),
        ("inspect", "显示一个队列：任务数、分组、按日统计", inspect_queue),
        ("pause", "暂停队列：Worker 不再从中取任务", pause_queue),
        ("resume", "恢复已暂停的队列", resume_queue),
        ("rm", "删除队列及其所有键", remove_queue),
        ("repair", "检查队列的一致性并修复：无主任务、失效的编号、租约、唯一锁、聚合残留", repair_queues),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    app.add_typer(group, name="queue", help="查看、暂停、删除、修复任务队列")


def list_queues(config_file: ConfigFile = None, redis_url: RedisUrl = None, as_json: AsJson = False) -> None:
    """Print the figures of all queues."""
    queues = Access(config_file, redis_url).run("无法读取队列", Inspector.queues)
    if as_json:
        print_json([{**asdict(queue), "size": queue.size} for queue in queues])
        return
    from junhong_cmp.cli.queue_screen import print_queues  # noqa: PLC0415 - JSON needs no tables

    print_queues(queues)


def inspect_queue(
    queue: QueueName,
    days: Annotated[
        int, typer.Option("--days", "-x", metavar="天数", min=1, max=90, help="按日统计的天数")
    ] = 7,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print all there is about one queue."""

    async def read(inspector: Inspector) -> tuple[QueueInfo, list[GroupInfo], list[DailyStats]]:
        info = await inspector.queue(queue)
        return info, await inspector.groups(queue), await inspector.history(queue, days)

    info, groups, history = Access(config_file, redis_url).run("无法读取队列", read)
    if as_json:
        print_json({**asdict(info), "size": info.size, "groups": groups, "history": history})
        return
    from junhong_cmp.cli.queue_screen import print_queue  # noqa: PLC0415 - JSON needs no tables

    print_queue(info, groups, history)


def pause_queue(queue: QueueName, config_file: ConfigFile = None, redis_url: RedisUrl = None) -> None:
    """Pause a queue that exists: a misspelt name must not pass for done. One paused already stays so."""

    async def pause(inspector: Inspector) -> str:
        await inspector.queue(queue)
        try:
            await inspector.pause_queue(queue)
        except QueuePauseError as already:
            return f"{already}，没有变化"
        return f"队列已暂停：{queue}"

    typer.echo(Access(config_file, redis_url).run("无法暂停队列", pause))


def resume_queue(queue: QueueName, config_file: ConfigFile = None, redis_url: RedisUrl = None) -> None:
    """Undo a pause; a queue that is not paused stays as it is, if there is one of this name."""

    async def resume(inspector: Inspector) -> str:
        try:
            await inspector.unpause_queue(queue)
        except QueuePauseError as already:
            await inspector.queue(queue)
            return f"{already}，没有变化"
        return f"队列已恢复：{queue}"

    typer.echo(Access(config_file, redis_url).run("无法恢复队列", resume))


def remove_queue(
    queue: QueueName,
    force: Annotated[bool, typer.Option("--force", "-f", help="连同其中的任务一起删除")] = False,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
) -> None:
    """Delete a queue; one with tasks only by force, one in work never."""
    deleted = Access(config_file, redis_url).run(
        "无法删除队列", lambda inspector: inspector.delete_queue(queue, force=force)
    )
    typer.echo(f"队列已删除：{queue}（{deleted} 个键）")


def repair_queues(
    queues: Annotated[
        list[str] | None, typer.Argument(metavar="[队列]…", help="队列名；不给则为全部")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="只检查不改动；发现不一致时退出码为 1")
    ] = False,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Check queues while they are in use, and mend them unless it is a dry run."""

    async def check(inspector: Inspector) -> list[CheckReport]:
        names = queues or [info.queue for info in await inspector.queues()]
        return [await inspector.check(name, repair=not dry_run) for name in names]

    reports = Access(config_file, redis_url).run("无法检查队列", check)
    if as_json:
        print_json([_as_json(report) for report in reports])
    else:
        from junhong_cmp.cli.queue_screen import print_checks  # noqa: PLC0415 - JSON needs no tables

        print_checks(reports)
    if dry_run and any(report.total for report in reports):
        raise typer.Exit(REFUSED)


def _as_json(report: CheckReport) -> dict[str, object]:
    return {
        "queue": report.queue,
        "repaired": report.repaired,
        "total": report.total,
        "counts": {fault.value: count for fault, count in report.counts.items()},
        "examples": [finding._asdict() for finding in report.examples],
    }
