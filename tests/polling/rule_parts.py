"""The parts that apply rules, wired over a plant as a worker wires them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.polling.plant import Plant
from tests.waiting import FakeClock

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.store import load_cards
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.handlers.operation_followup import OperationFollowupHandler
from junhong_cmp.polling.handlers.protect import ProtectHandler
from junhong_cmp.polling.operation_sender import OperationSender
from junhong_cmp.polling.operation_settler import OperationSettler
from junhong_cmp.polling.package_evaluator import PackageEvaluator
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.protect_sweep import ProtectSweep
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType

HOUR = timedelta(hours=1)


@dataclass
class RuleParts:
    """Handlers and sweeps that share a plant and a clock."""

    plant: Plant
    clock: Clock | FakeClock

    def __post_init__(self) -> None:
        plant = self.plant
        self.tasks = CardTasks(Client(plant.redis))
        self.pauses = AccountPauses(
            plant.pool,
            reread=plant.config.try_refresh,
            accounts=lambda: plant.config.snapshot.accounts,
            loads=plant.concurrency.loads,
            clock=self.clock,
        )
        self.settler = OperationSettler(plant.pool, plant.lifecycle, self.clock)
        self.sweep = ProtectSweep(plant.pool, plant.config, self.tasks, self.clock, page=2)
        self.evaluator = PackageEvaluator(plant.pool, plant.config, self.tasks, clock=self.clock)

    def protect(self, **changes: Any) -> ProtectHandler:
        sender = OperationSender(
            pool=self.plant.pool,
            concurrency=self.plant.concurrency,
            pauses=self.pauses,
            settler=self.settler,
            stats=self.plant.stats,
            clock=self.clock,
        )
        fields: dict[str, Any] = {
            "pool": self.plant.pool,
            "gateway": self.plant.gateway,
            "config_manager": self.plant.config,
            "queue_manager": self.plant.queue,
            "sender": sender,
            "clock": self.clock,
        }
        return ProtectHandler(**(fields | changes))

    def followup(self, **changes: Any) -> OperationFollowupHandler:
        fields: dict[str, Any] = {
            "pool": self.plant.pool,
            "gateway": self.plant.gateway,
            "config_manager": self.plant.config,
            "concurrency": self.plant.concurrency,
            "pauses": self.pauses,
            "settler": self.settler,
            "tasks": self.tasks,
            "clock": self.clock,
        }
        return OperationFollowupHandler(**(fields | changes))

    async def run_protect(self, card: Card, order: Order | None = None, **changes: Any) -> None:
        await self.protect(**changes).process_task(card_task(TaskType.POLLING_PROTECT, card, order))

    async def handed_over(self) -> list[int]:
        """The cards that tasks to decide about are waiting for; they are taken out of the queue."""
        inspector = Inspector(self.plant.redis)
        if CRON_QUEUE not in {queue.queue for queue in await inspector.queues()}:
            return []
        tasks = await inspector.list_tasks(CRON_QUEUE, TaskState.PENDING)
        await inspector.delete_all(CRON_QUEUE, TaskState.PENDING)
        return sorted(CardPayload.decode(task.payload).card_id for task in tasks)

    async def reload(self, card: Card) -> Card:
        return (await load_cards(self.plant.pool, [card.id]))[card.id]

    async def operations(self) -> list[tuple[str, str, str]]:
        rows = await self.plant.pool.fetch("SELECT kind, reason, status FROM card_operation ORDER BY id")
        return [(row["kind"], row["reason"], row["status"]) for row in rows]


def card_task(kind: TaskType, card: Card, order: Order | None = None) -> ProcessingTask:
    deadline = SystemClock().now() + timedelta(minutes=1)
    return ProcessingTask(id="t", type=kind, deadline=deadline, payload=CardPayload(card.id, order).encode())
