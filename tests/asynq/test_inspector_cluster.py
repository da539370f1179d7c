"""The inspector on a Redis Cluster, also where the other tests run on a single server."""

from datetime import timedelta
from typing import Any

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_check import Fault
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task


async def test_every_script_and_scan_stays_in_its_slot(cluster: Any) -> None:
    client, inspector = Client(cluster), Inspector(cluster)
    for queue in ("a", "b"):
        for number in range(3):
            options = EnqueueOptions(
                queue=queue, task_id=str(number), process_in=timedelta(hours=1), unique_for=timedelta(hours=1)
            )
            await client.enqueue(Task("t", str(number).encode()), options)
        await client.enqueue(Task("t"), EnqueueOptions(queue=queue, group="g"))
    await inspector.run_task("a", "0")
    await inspector.archive_task("a", "0")
    await inspector.update_task_payload("a", "1", b"new")
    assert (await inspector.task("a", "1")).payload == b"new"
    assert len(await inspector.list_tasks("a", TaskState.SCHEDULED)) == 2
    assert (await inspector.run_all("a", TaskState.AGGREGATING, group="g")).done == 1
    assert (await inspector.delete_all("a", TaskState.PENDING)).done == 1

    await cluster.execute_command("ZREM", queue_keys("a").scheduled, "1")
    await cluster.execute_command("SET", queue_keys("a").unique("t", b"gone"), "gone")
    report = await inspector.check("a", repair=True)
    assert report.counts == {Fault.ORPHAN: 1, Fault.STALE_LOCK: 1}

    await inspector.delete_queue("a", force=True)
    assert [info.queue for info in await inspector.queues()] == ["b"]
    assert (await inspector.queue("b")).size == 4


async def test_where_a_queue_lies(cluster: Any) -> None:
    inspector = Inspector(cluster)
    (node,) = await inspector.cluster_nodes("q")
    assert node.primary
    slot = await cluster.execute_command(
        "CLUSTER KEYSLOT", queue_keys("q").pending, target_nodes=cluster.get_random_node()
    )
    assert inspector.cluster_key_slot("q") == slot
