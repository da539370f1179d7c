import asyncio
import time
from typing import Any

import pytest
from redis.asyncio import Redis

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.reply_spin import ReplySpin
from junhong_cmp.asynq.task import EnqueueOptions, Task


def reply() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Turns:
    """Counts how often a loop comes round while something runs."""

    def __init__(self) -> None:
        self.count = 0
        self._task = asyncio.create_task(self._turn())

    async def _turn(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def test_a_reply_that_comes_soon_is_seen_without_going_to_sleep() -> None:
    spin, near = ReplySpin(), reply()
    asyncio.get_running_loop().call_soon(near.set_result, "here")
    await spin.watch(near)
    assert near.done()


async def test_a_reply_that_does_not_come_is_left_to_the_sleeper() -> None:
    spin, far = ReplySpin(), reply()
    began = time.perf_counter()
    await spin.watch(far)
    assert time.perf_counter() - began >= 60e-6
    assert not far.done()


async def test_after_each_miss_it_is_left_out_for_twice_as_many_replies() -> None:
    spin, turns = ReplySpin(), Turns()
    spun = []
    for number in range(20):
        before = turns.count
        await spin.watch(reply())
        if turns.count > before:
            spun.append(number)
    await turns.end()
    assert spun == [0, 2, 5, 10, 19]


async def test_a_hit_ends_the_leaving_out() -> None:
    spin = ReplySpin()
    await spin.watch(reply())
    await spin.watch(reply())  # left out
    near = reply()
    asyncio.get_running_loop().call_soon(near.set_result, None)
    await spin.watch(near)
    turns = Turns()
    before = turns.count
    await spin.watch(reply())
    assert turns.count > before
    await turns.end()


async def test_a_cancelled_caller_takes_its_reply_with_it() -> None:
    spin, far = ReplySpin(), reply()
    waiting = asyncio.create_task(spin.watch(far))
    asyncio.get_running_loop().call_soon(waiting.cancel)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert far.cancelled()


@pytest.mark.single_node("a cluster client has no line")
async def test_many_enqueued_one_by_one_and_side_by_side_all_arrive(redis_url: str, redis: Redis) -> None:
    opened = open_redis(redis_url)
    client = Client(opened)
    for number in range(200):
        await client.enqueue(Task("a", b"%d" % number), EnqueueOptions(task_id=f"alone-{number}"))
    await asyncio.gather(
        *(client.enqueue(Task("a"), EnqueueOptions(task_id=f"beside-{number}")) for number in range(200))
    )
    assert await redis.llen("asynq:{default}:pending") == 400
    given_up = asyncio.create_task(client.enqueue(Task("a"), EnqueueOptions(task_id="given-up")))
    asyncio.get_running_loop().call_soon(given_up.cancel)
    with pytest.raises(asyncio.CancelledError):
        await given_up
    info = await client.enqueue(Task("a"), EnqueueOptions(task_id="next"))  # its own reply, not the other's
    assert info.id == "next"
    await opened.aclose()
