"""What ``junhong card set`` does with the services."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.limit_edit import LimitEdit, record_limits
from junhong_cmp.cards.model import Card
from junhong_cmp.cli.card_choice import cards_with, portions, some_of
from junhong_cmp.cli.card_set_forecast import Forecast
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.card_tasks import CardTasks

_NOT_TOLD: Final = "已保存，但未能让 Worker 立即判定，定时检查会在一小时内补上"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many cards were meant, how many an edit changes, and how many the rules would stop or give back."""

    cards: int
    changed: int
    cards_to_stop: int
    cards_to_resume: int
    hints: tuple[str, ...] = ()


async def apply_edit(
    pool: Pool, settings: Settings, numbers: Sequence[str], edit: LimitEdit, *, dry_run: bool
) -> Outcome:
    """Change the cards unless it is a dry run; return what that meant."""
    async with pool.acquire() as conn:
        cards = await cards_with(conn, numbers)
        accounts = await list_accounts(conn)
    forecast = await Forecast.load(pool, cards, accounts)
    edited = [(card, edit.applied_to(card)) for card in cards]
    outcome = Outcome(
        cards=len(cards),
        changed=sum(before != after for before, after in edited),
        cards_to_stop=sum(forecast.is_to_stop(after) for _, after in edited),
        cards_to_resume=sum(forecast.is_to_resume(*pair) for pair in edited),
        hints=_hints(edit, cards, forecast),
    )
    if not dry_run:
        await _save(pool, settings, [card.id for card in cards], edit)
    return outcome


async def _save(pool: Pool, settings: Settings, card_ids: Sequence[int], edit: LimitEdit) -> None:
    changed: list[int] = []
    for portion in portions(card_ids):

        async def record(conn: Conn, portion: Sequence[int] = portion) -> list[int]:
            return await record_limits(conn, portion, edit)

        changed += await in_transaction(pool, record)
    if not changed:
        return
    with explained(_NOT_TOLD):
        redis = open_redis(settings.redis.url.get_secret_value(), pool_size=2)
        try:
            tasks = CardTasks(Client(redis))
            for portion in portions(changed):
                await tasks.evaluate(portion)
        finally:
            await redis.aclose()


def _hints(edit: LimitEdit, cards: Sequence[Card], forecast: Forecast) -> tuple[str, ...]:
    if not isinstance(edit.plan, str):
        return ()
    codes = forecast.codes_without(cards, edit.plan)
    if not codes:
        return ()
    return (f"账号 {some_of(codes)} 的套餐 {edit.plan} 未设流量，不限制用量；用 junhong plan set 设定",)
