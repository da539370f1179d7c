"""Every script on a real Redis Cluster of one node: it refuses any script whose keys lie in two slots."""

from datetime import timedelta
from typing import Any

from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.scheduler import CronEntry, Scheduler
from junhong_cmp.asynq.task import EnqueueOptions, EnqueueStatus, Task


async def test_a_task_goes_all_its_ways(cluster: Any) -> None:
    client, broker = Client(cluster), Broker(cluster)
    unique = timedelta(hours=1)
    items = [
        (Task("t", b"1"), EnqueueOptions(queue=queue, task_id=str(number), unique_for=unique))
        for queue, number in (("a", 1), ("b", 2), ("c", 3))
    ]
    items += [(Task("t"), EnqueueOptions(queue="a", task_id=f"p{number}")) for number in range(5)]
    items += [(Task("t"), EnqueueOptions(queue="a", group="g")), (items[0][0], EnqueueOptions(queue="a"))]
    results = await client.enqueue_many(items)
    assert {result.status for result in results} == {EnqueueStatus.ENQUEUED}

    tasks = (await broker.dequeue("a", len(AckKind), owner="w")).tasks
    assert await broker.extend_leases("a", tasks) == []
    assert await broker.write_result("a", tasks[0].message.id, b"x")
    assert (await broker.repair_orphans("a")).total == 0
    acks = [Ack(kind, task, at=1) for kind, task in zip(AckKind, tasks, strict=True)]
    assert await broker.ack("a", acks) == [AckOutcome.OK] * len(AckKind)
    assert await broker.forward("a") == 1
    assert await broker.expired_leases("a", 1) == []
    assert await broker.delete_expired_completed("a") == 1
    await broker.pause("b")
    assert (await broker.dequeue("b", 1, owner="w")).paused

    info = ServerInfo(host="h", pid=1, server_id="s")
    await broker.write_server_state(info, [WorkerInfo(task_id="1")])
    inspector = Inspector(cluster)
    assert {queue.queue: queue.pending for queue in await inspector.queues()} == {"a": 4, "b": 1, "c": 1}
    assert [len(server.workers) for server in await inspector.servers()] == [1]
    await broker.clear_server_state(info)
    assert (await inspector.history("a", days=1))[0].processed == 4


async def test_cron_entries_fire(cluster: Any) -> None:
    entry = CronEntry("e", "@every 1s", Task("t"), EnqueueOptions(queue="a", unique_for=timedelta(hours=1)))
    scheduler = Scheduler(cluster, [entry])
    await scheduler.start()
    broker = Broker(cluster)
    await wait_until(lambda: broker.pending_count("a"), timeout=10, description="a run")
    inspector = Inspector(cluster)
    assert len(await inspector.scheduler_entries()) == 1
    assert len(await inspector.enqueue_events("e")) == 1
    await scheduler.stop()
    assert await inspector.scheduler_entries() == []
