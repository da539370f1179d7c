"""What the commands that look into the queues share: the inspector, its errors, how values are printed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import orjson
import typer

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_errors import QueueNotFoundError
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.cli.settings import Service, load_settings

REFUSED = 1
"""Exit code: the queues were reached, but what was asked for is not there or not allowed."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the queues; it opens the inspector for one piece of work."""

    config_file: Path | None
    redis_url: str | None

    def run(self, action: str, work: Callable[[Inspector], Awaitable[_Result]]) -> _Result:
        """Do ``work`` and return what it gave; a refusal of the inspector ends the command.

        Raises:
            ConfigError: the configuration is wrong.
            DependencyUnavailableError: Redis does not answer.
            typer.Exit: refused, and the user has been told why.

        """
        settings = load_settings(
            {"config": self.config_file, "redis.url": self.redis_url}, without=Service.POSTGRES
        )
        try:
            with explained(action):
                return asyncio.run(_with_inspector(settings.redis.url.get_secret_value(), work))
        except AsynqError as error:
            remedy = "；junhong queue ls 列出现有队列" if isinstance(error, QueueNotFoundError) else ""
            typer.echo(f"错误：{error}{remedy}", err=True)
            raise typer.Exit(REFUSED) from error


async def _with_inspector(url: str, work: Callable[[Inspector], Awaitable[_Result]]) -> _Result:
    redis = open_redis(url, pool_size=2)
    try:
        return await work(Inspector(redis))
    finally:
        await redis.aclose()


def parse_state(text: str) -> TaskState:
    """Return the state a user named, in the spelling of the ``--json`` output or in Chinese."""
    for state in TaskState:
        if text in {state.value, STATE_NAMES[state]}:
            return state
    raise typer.BadParameter(f"状态只能为 {'、'.join(state.value for state in TaskState)}")


STATE_NAMES = {
    TaskState.PENDING: "待处理",
    TaskState.ACTIVE: "处理中",
    TaskState.SCHEDULED: "定时",
    TaskState.RETRY: "重试",
    TaskState.ARCHIVED: "归档",
    TaskState.COMPLETED: "完成",
    TaskState.AGGREGATING: "聚合中",
}


def print_json(value: object) -> None:
    """Print a value as JSON; durations as seconds, bytes as text or, if they are none, as hexadecimal."""
    typer.echo(orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2).decode())


def text_of(data: bytes) -> str:
    """Return bytes as text for people; what is no text as hexadecimal digits."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() or not text else f"0x{data.hex()}"


def moment(instant: datetime | None) -> str:
    """Return an instant in the user's time zone; "-" for none."""
    return f"{instant.astimezone():%Y-%m-%d %H:%M:%S}" if instant is not None else "-"


def _plain(value: Any) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError
