"""What one task type asks of a carrier and what it does with the answer; the rest is the same for all."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import Recorded
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import retried
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.polling.tasks import TaskType

A = TypeVar("A")
W = TypeVar("W")


class PollQuery(Protocol[A]):
    """One kind of poll: a question to the carrier, and how its answer is kept."""

    @property
    def task_type(self) -> TaskType:
        """The task type the query serves."""
        ...

    @property
    def call(self) -> GatewayCall:
        """The gateway's name for the question."""
        ...

    async def ask(self, gateway: GatewayClient, account: GatewayAccount, card: CardRef) -> A:
        """Ask the carrier about one card; raises ``GatewayError``."""
        ...

    async def ask_batch(
        self, gateway: GatewayClient, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, A | GatewayError]:
        """Ask the carrier about several cards in one call; raises ``GatewayError`` for all of them."""
        ...

    async def commit(self, card: Card, answer: A, observed_at: datetime) -> Recorded:
        """Return when the answer is committed to PostgreSQL."""
        ...

    async def commit_batch(
        self, answers: Sequence[tuple[Card, A]], observed_at: datetime
    ) -> list[Recorded | Exception]:
        """Return when the answers are committed, each with its outcome or what it failed with."""
        ...


def recording_batcher(
    pool: Pool, record: Callable[[Conn, Sequence[W]], Awaitable[list[Recorded]]], name: str
) -> MicroBatcher[W, Recorded]:
    """Return a batcher that records observations, a batch a transaction; ``record`` makes it."""

    async def flush(writes: Sequence[W]) -> Sequence[Recorded]:
        return await retried(pool, lambda conn: record(conn, writes))

    return MicroBatcher(flush, name=name)
