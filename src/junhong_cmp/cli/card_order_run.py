"""What ``junhong card stop`` and ``resume`` do: look the card up and hand the order to the workers."""

import asyncio
import getpass
import uuid
from contextlib import AsyncExitStack
from typing import Final

import typer

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.iccid import IccidError, normalise
from junhong_cmp.cards.model import Card, StopReason
from junhong_cmp.cards.store import find_by_iccids
from junhong_cmp.cli.import_desk import open_database
from junhong_cmp.cli.inspection import REFUSED
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.errors import ExitCode
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.operation_rules import OperationKind

_ORDERING: Final = "无法下达停复机指令"
_WORDS: Final = {OperationKind.STOP: "停机", OperationKind.RESUME: "复机"}


def run_stop(settings: Settings, number: str, reason: StopReason, request_id: str | None) -> int:
    """Order a stop and return the exit code: 1 if there is no such card."""
    return _order(settings, number, Order(OperationKind.STOP, request_id or _new_id(), reason, _by()))


def run_resume(settings: Settings, number: str, request_id: str | None) -> int:
    """Order a resume and return the exit code: 1 if there is no such card."""
    order = Order(OperationKind.RESUME, request_id or _new_id(), StopReason.MANUAL, _by())
    return _order(settings, number, order)


def _order(settings: Settings, number: str, order: Order) -> int:
    try:
        found = asyncio.run(_hand_in(settings, number, order))
    except IccidError as error:
        typer.echo(f"错误：不是有效的 ICCID：{error}", err=True)
        return REFUSED
    if found is None:
        typer.echo(f"错误：没有 ICCID 为 {number} 的卡", err=True)
        return REFUSED
    typer.echo(f"已下达{_WORDS[order.kind]}指令，由 Worker 执行；请求号 {order.request_id}")
    return int(ExitCode.CLEAN)


def _new_id() -> str:
    return uuid.uuid4().hex


def _by() -> str:
    """Return who is at the keyboard, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        return ""


async def _hand_in(settings: Settings, number: str, order: Order) -> Card | None:
    """Return the card the order is for; None when there is no such card."""
    iccid = normalise(number).value
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_database(settings, _ORDERING))
        with explained(_ORDERING):
            async with pool.acquire() as conn:
                card = (await find_by_iccids(conn, [iccid])).get(iccid)
            if card is not None:
                redis = open_redis(settings.redis.url.get_secret_value(), pool_size=2)
                stack.push_async_callback(redis.aclose)
                await CardTasks(Client(redis)).order(card.id, order)
    return card
