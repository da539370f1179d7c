"""Changes of cards in PostgreSQL, told to the shards after the commit and only then."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import structlog

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.faults import PASSING_FAULTS
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")


class CardChanges:
    """Card changes gather which cards a transaction touches, each as it was before the first touch."""

    def __init__(self) -> None:
        self._before: dict[int, Card | None] = {}

    @property
    def before(self) -> Mapping[int, Card | None]:
        """The cards as they were, by id; None for those that were not there."""
        return self._before

    def created(self, cards: Iterable[Card]) -> None:
        """Note cards the transaction has inserted."""
        for card in cards:
            self._before.setdefault(card.id, None)

    def touching(self, cards: Iterable[Card]) -> None:
        """Note cards, as they are now, that the transaction is about to change or to delete."""
        for card in cards:
            self._before.setdefault(card.id, card)


class CardFollower:
    """A card follower brings the shards in line with what PostgreSQL says of changed cards now.

    It asks for the cards as they are, whatever the change was meant to be: what was rolled back has no
    effect, and of two changes announced in the wrong order both announcements tell the later one.
    """

    def __init__(self, pool: Pool, lifecycle: PollingLifecycleService) -> None:
        self._pool = pool
        self._lifecycle = lifecycle

    async def follow(
        self, before: Mapping[int, Card | None], task_types: Sequence[TaskType] = POLLING_TASK_TYPES
    ) -> dict[int, Card]:
        """Follow the changes of these cards for some task types; return the live ones as they are now."""
        if not before:
            return {}
        now = await load_cards(self._pool, before.keys())
        known = {card_id: card for card_id, card in before.items() if card is not None}
        await self._lifecycle.cards_deleted([card for card_id, card in known.items() if card_id not in now])
        await self._lifecycle.cards_changed(
            [(card, now[card_id]) for card_id, card in known.items() if card_id in now], task_types
        )
        await self._lifecycle.cards_created([card for card_id, card in now.items() if card_id not in known])
        return now


async def change_cards(
    pool: Pool,
    lifecycle: PollingLifecycleService,
    work: Callable[[Conn, CardChanges], Awaitable[T]],
) -> T:
    """Run ``work`` in a transaction, and after its commit bring the shards in line with what it touched.

    ``work`` may run more than once (see :func:`in_transaction`); each run starts with nothing noted. When it
    raises, everything is rolled back and nothing is announced. A fault after the commit is no fault of the
    change: it is logged, and the next comparison of PostgreSQL with the shards makes up for it.
    """
    changes = CardChanges()

    async def attempt(conn: Conn) -> T:
        nonlocal changes
        changes = CardChanges()
        return await work(conn, changes)

    result = await in_transaction(pool, attempt)
    try:
        await CardFollower(pool, lifecycle).follow(changes.before)
    except PASSING_FAULTS as error:
        log.warning("分片未能跟上卡的变更，等待对账", cards=len(changes.before), error=type(error).__name__)
    return result
