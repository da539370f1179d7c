"""Tasks about single cards are enqueued once, and the same order is one task."""

from redis.asyncio import Redis
from tests.polling.waiting_orders import payloads

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.operation_rules import OperationKind
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType


async def test_a_card_is_decided_about_once_however_many_ask(redis: Redis) -> None:
    tasks = CardTasks(Client(redis))
    assert await tasks.protect([]) == 0
    made = [await tasks.protect([1, 2]), await tasks.protect([2, 3])]
    assert made[0] == 2
    assert sum(made) in {3, 4}, "a period of five minutes may end between the two"
    assert {payload.card_id for payload in await payloads(redis)} == {1, 2, 3}


async def test_every_change_of_a_limit_is_heard(redis: Redis) -> None:
    tasks = CardTasks(Client(redis))
    await tasks.evaluate([])
    for _ in range(2):
        await tasks.evaluate([1, 2])
    waiting = await Inspector(redis).list_tasks(CRON_QUEUE, TaskState.PENDING)
    assert {task.type for task in waiting} == {TaskType.POLLING_PACKAGE}
    assert sorted(CardPayload.decode(task.payload).card_id for task in waiting) == [1, 1, 2, 2]


async def test_an_order_handed_in_twice_is_one(redis: Redis) -> None:
    tasks = CardTasks(Client(redis))
    order = Order(OperationKind.STOP, "request-1")
    await tasks.order(5, order)
    await tasks.order(5, order)
    await tasks.send(operation_id=9, card_id=6, sends=1)
    await tasks.send(operation_id=9, card_id=6, sends=1)
    assert await payloads(redis) == [CardPayload(5, order), CardPayload(6)]
