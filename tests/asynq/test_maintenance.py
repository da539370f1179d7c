import asyncio
from collections import Counter
from datetime import timedelta

from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.asynq.maintenance import MaintenanceLoop

SOON = timedelta(milliseconds=10)


async def test_a_failing_queue_does_not_keep_the_others_from_their_turn() -> None:
    turns: Counter[str] = Counter()

    async def act(queue: str) -> None:
        turns[queue] += 1
        if queue == "bad":
            raise ValueError("bad data")
        if queue == "away" and turns[queue] < 3:
            raise RedisConnectionError("refused")

    loop = MaintenanceLoop("清理", act, ["bad", "away", "good"], SOON, SOON)
    with capture_logs() as logs:
        running = asyncio.create_task(loop.run())
        await wait_until(lambda: turns["good"] >= 5, description="the good queue has its turns")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert min(turns.values()) >= 4
    events = Counter(entry["event"] for entry in logs)
    assert events["Redis 操作失败，将自动重试"] == 1
    assert events["Redis 操作已恢复"] == 1
    assert events["后台维护出错"] >= 4
