"""What ``junhong card stop`` and ``resume`` do: look the card up and hand the order to the workers."""

import asyncio
import getpass
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import typer

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.model import StopReason
from junhong_cmp.cli.card_choice import cards_with, chosen_numbers
from junhong_cmp.cli.card_order_outlook import KIND_NAMES, load_outlook
from junhong_cmp.cli.import_desk import open_database
from junhong_cmp.cli.inspection import REFUSED
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.errors import ExitCode
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.operation_rules import OperationKind
from junhong_cmp.polling.rule_editor import RuleRefusedError

_ORDERING: Final = "无法下达停复机指令"


def run_stop(settings: Settings, number: str, reason: StopReason, request_id: str | None) -> int:
    """Order a stop and return the exit code: 1 if there is no such card."""
    return _order(settings, number, Order(OperationKind.STOP, request_id or _new_id(), reason, _by()))


def run_resume(settings: Settings, number: str, request_id: str | None) -> int:
    """Order a resume and return the exit code: 1 if there is no such card."""
    order = Order(OperationKind.RESUME, request_id or _new_id(), StopReason.MANUAL, _by())
    return _order(settings, number, order)


def _order(settings: Settings, number: str, order: Order) -> int:
    chosen = chosen_numbers([number], None)
    try:
        outlook = asyncio.run(_hand_in(settings, chosen, order))
    except RuleRefusedError as error:
        typer.echo(f"错误：{error}", err=True)
        return REFUSED
    typer.echo(f"已下达{KIND_NAMES[order.kind]}指令，由 Worker 执行；请求号 {order.request_id}")
    for sentence in outlook:
        typer.echo(f"提示：{sentence}")
    if outlook:
        typer.echo(f"junhong card show {chosen[0]} 显示其操作的进展")
    return int(ExitCode.CLEAN)


def _new_id() -> str:
    return uuid.uuid4().hex


def _by() -> str:
    """Return who is at the keyboard, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        return ""


async def _hand_in(settings: Settings, chosen: Sequence[str], order: Order) -> Sequence[str]:
    """Hand the order in and return what stands before it.

    Raises:
        RuleRefusedError: the number names no card, or several.

    """
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_database(settings, _ORDERING))
        with explained(_ORDERING):
            async with pool.acquire() as conn:
                (card,) = await cards_with(conn, chosen)
            outlook = await load_outlook(pool, card, order)
            redis = open_redis(settings.redis.url.get_secret_value(), pool_size=2)
            stack.push_async_callback(redis.aclose)
            await CardTasks(Client(redis)).order(card.id, order)
    return outlook
