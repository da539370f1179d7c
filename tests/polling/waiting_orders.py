"""What ``polling:protect`` tasks wait in the queue."""

from redis.asyncio import Redis

from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.polling.card_payload import CardPayload
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType


async def payloads(redis: Redis) -> list[CardPayload]:
    tasks = await Inspector(redis).list_tasks(CRON_QUEUE, TaskState.PENDING)
    assert {task.type for task in tasks} == {TaskType.POLLING_PROTECT}
    return sorted((CardPayload.decode(task.payload) for task in tasks), key=lambda payload: payload.card_id)
