"""``junhong task``: look into single tasks, run, archive, delete and cancel them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.inspector import PAGE_SIZE, Inspector
from junhong_cmp.asynq.inspector_errors import InspectionError, TaskStateError
from junhong_cmp.asynq.inspector_types import BulkReport
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.cli.inspection import REFUSED, Access, parse_state, print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, RedisUrl
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup

_STATES = "、".join(state.value for state in TaskState)

QueueName = Annotated[str, typer.Option("--queue", "-q", metavar="队列", help="队列名")]
TaskIds = Annotated[list[str] | None, typer.Argument(metavar="[编号]…", help="任务编号")]
State = Annotated[
    TaskState, typer.Option("--state", "-s", metavar="状态", parser=parse_state, help=f"状态：{_STATES}")
]
StateOfAll = Annotated[
    TaskState | None,
    typer.Option(
        "--all",
        metavar="状态",
        parser=parse_state,
        help="代替编号：该状态的所有任务",
        show_default=False,
    ),
]
Group = Annotated[
    str, typer.Option("--group", "-g", metavar="分组", help="分组名，用于 aggregating", show_default=False)
]

_One = Callable[[Inspector, str, str], Awaitable[None]]
_All = Callable[..., Awaitable[BulkReport]]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    for name, explanation, command in (
        ("ls", "列出一个队列中某状态的任务，最早的在前", list_tasks),
        ("inspect", "显示一个任务的全部信息", inspect_task),
        ("run", "让任务立即排队执行", run_tasks),
        ("archive", "归档任务，不再执行", archive_tasks),
        ("delete", "删除任务并释放其唯一锁", delete_tasks),
        ("cancel", "请求取消正在执行的任务", cancel_tasks),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    app.add_typer(group, name="task", help="查看、执行、归档、删除、取消任务")


def list_tasks(
    queue: QueueName,
    state: State,
    *,
    group: Group = "",
    page: Annotated[int, typer.Option("--page", metavar="页码", min=1, help="第几页")] = 1,
    size: Annotated[
        int, typer.Option("--size", metavar="条数", min=1, max=10_000, help="每页条数")
    ] = PAGE_SIZE,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print a page of tasks."""
    tasks = Access(config_file, redis_url).run(
        "无法读取任务",
        lambda inspector: inspector.list_tasks(queue, state, group=group, page=page, size=size),
    )
    if as_json:
        print_json([asdict(task) for task in tasks])
        return
    from junhong_cmp.cli.task_screen import print_tasks  # noqa: PLC0415 - JSON needs no tables

    print_tasks(tasks)


def inspect_task(
    task_id: Annotated[str, typer.Argument(metavar="编号", help="任务编号")],
    queue: QueueName,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print all that is known about one task."""
    task = Access(config_file, redis_url).run(
        "无法读取任务", lambda inspector: inspector.task(queue, task_id)
    )
    if as_json:
        print_json(asdict(task))
        return
    from junhong_cmp.cli.task_screen import print_task  # noqa: PLC0415 - JSON needs no tables

    print_task(task)


def run_tasks(
    queue: QueueName,
    task_ids: TaskIds = None,
    state: StateOfAll = None,
    group: Group = "",
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
) -> None:
    """Put tasks into the queue now."""
    operate = _Operation("排队执行", Inspector.run_task, Inspector.run_all)
    operate(Access(config_file, redis_url), queue, task_ids, state, group)


def archive_tasks(
    queue: QueueName,
    task_ids: TaskIds = None,
    state: StateOfAll = None,
    group: Group = "",
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
) -> None:
    """Put tasks into the archive."""
    operate = _Operation("归档", Inspector.archive_task, Inspector.archive_all)
    operate(Access(config_file, redis_url), queue, task_ids, state, group)


def delete_tasks(
    queue: QueueName,
    task_ids: TaskIds = None,
    state: StateOfAll = None,
    group: Group = "",
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
) -> None:
    """Delete tasks."""
    operate = _Operation("删除", Inspector.delete_task, Inspector.delete_all)
    operate(Access(config_file, redis_url), queue, task_ids, state, group)


def cancel_tasks(
    task_ids: Annotated[list[str], typer.Argument(metavar="编号…", help="任务编号")],
    then: Annotated[
        CancelPolicy | None,
        typer.Option(
            "--then",
            metavar="去向",
            help="取消后：retry 重试，archive 归档，drop 丢弃；不给则由实例自己决定（Go 实例总是重试）",
        ),
    ] = None,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
) -> None:
    """Ask the servers to cancel tasks; that nobody works on one, or there is none, is a refusal."""

    async def cancel(inspector: Inspector, task_id: str) -> str:
        heard = await inspector.cancel_running(task_id, policy=then)
        return f"已请求取消：{task_id}（{heard} 个实例收到）"

    access = Access(config_file, redis_url)
    if access.run("无法请求取消", lambda inspector: _each(task_ids, partial(cancel, inspector))):
        raise typer.Exit(REFUSED)


class _Operation:
    """An operation does one thing to the tasks a user names, one by one or all of a state."""

    def __init__(self, name: str, one: _One, every: _All) -> None:
        self._name = name
        self._one = one
        self._every = every

    def __call__(
        self,
        access: Access,
        queue: str,
        task_ids: Sequence[str] | None,
        state: TaskState | None,
        group: str,
    ) -> None:
        """Do it, tell what became of it, and end with a failure if any task was refused."""
        if bool(task_ids) == (state is not None):
            raise typer.BadParameter("任务编号与 --all 须给出其一", param_hint="编号")
        action = f"无法{self._name}任务"
        if state is not None:
            report = access.run(action, lambda inspector: self._every(inspector, queue, state, group=group))
            typer.echo(f"已{self._name} {report.done} 个任务{_notes(report)}")
            return

        async def do(inspector: Inspector, task_id: str) -> str:
            try:
                await self._one(inspector, queue, task_id)
            except TaskStateError as error:
                if error.state is TaskState.ACTIVE:
                    raise
                return f"{error}，没有变化"  # where the operation would have put it
            return f"已{self._name}：{task_id}"

        if access.run(action, lambda inspector: _each(task_ids or (), partial(do, inspector))):
            raise typer.Exit(REFUSED)


async def _each(task_ids: Sequence[str], do: Callable[[str], Awaitable[str]]) -> int:
    """Do it to every task, print what it says of each, and return how many were refused."""
    refused = 0
    for task_id in task_ids:
        try:
            said = await do(task_id)
        except InspectionError as error:
            refused += 1
            typer.echo(f"错误：{error}", err=True)
        else:
            typer.echo(said)
    return refused


def _notes(report: BulkReport) -> str:
    notes = {
        "清除 {} 个没有任务的编号": report.ghosts,
        "跳过 {} 个状态不符的编号（可用 junhong queue repair 检查）": report.left,
        "归档超限删除 {} 个最旧的任务": report.trimmed,
    }
    told = [text.format(count) for text, count in notes.items() if count]
    return f"（{'；'.join(told)}）" if told else ""
