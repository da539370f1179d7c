from datetime import timedelta

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling import keys
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.notice_board import NoticeBoard
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.server_clock import ServerClock
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA
SHARD = ShardId(CARDDATA, 7, 0)
OTHER = ShardId(TaskType.POLLING_REALNAME, 12, 3)
EPOCH = 5


@pytest.fixture
async def board(redis: Redis) -> NoticeBoard:
    board = NoticeBoard(redis, ServerClock(), recheck=timedelta(seconds=30))
    await board.seal(EPOCH)
    return board


async def test_notices_are_taken_once_with_the_earliest_time_of_each_shard(board: NoticeBoard) -> None:
    await board.post({SHARD: 3000, OTHER: 4000})
    await board.post({SHARD: 2000})
    await board.post({SHARD: 5000})
    assert (await board.take(EPOCH)).dues == {SHARD: 2000, OTHER: 4000}
    assert (await board.take(EPOCH)).dues == {}


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
async def test_another_term_is_refused_and_takes_nothing(board: NoticeBoard, epoch: int) -> None:
    await board.post({SHARD: 3000})
    with pytest.raises(FencedError) as refused:
        await board.take(epoch)
    assert refused.value.fence == EPOCH
    assert (await board.take(EPOCH)).dues == {SHARD: 3000}


async def test_without_a_fence_the_data_are_lost(redis: Redis, board: NoticeBoard) -> None:
    await redis.flushall()
    with pytest.raises(FencedError) as refused:
        await board.take(EPOCH)
    assert refused.value.fence is None


async def test_a_past_term_cannot_seal(board: NoticeBoard) -> None:
    with pytest.raises(FencedError):
        await board.seal(EPOCH - 1)


async def test_what_is_no_shard_is_ignored(redis: Redis, board: NoticeBoard) -> None:
    strange = ("", "carddata", "carddata:7", "carddata:7:x", "nothing:7:0", "carddata:-7:0", "carddata:7:0:1")
    await redis.zadd(keys.notices(), dict.fromkeys(strange, 1))
    await board.post({SHARD: 3000})
    assert (await board.take(EPOCH)).dues == {SHARD: 3000}


@pytest.mark.parametrize("key", [keys.notices(), keys.notices_fence()])
async def test_a_foreign_value_under_a_key_is_told_and_stops_nobody(
    redis: Redis, board: NoticeBoard, key: str
) -> None:
    await redis.delete(key)
    await redis.rpush(key, "foreign")
    with capture_logs() as logs:
        await board.seal(EPOCH)
        await board.post({SHARD: 3000})
        notices = await board.take(EPOCH)
    assert notices.dues == {}
    assert abs(notices.now_ms - int((await redis.time())[0]) * 1000) < 5000
    assert "到期通知的键中有异常数据，已跳过" in [entry["event"] for entry in logs]


async def test_redis_away_costs_no_more_than_the_notice(
    redis: Redis, redis_server: EmbeddedRedis, board: NoticeBoard
) -> None:
    await redis_server.stop()
    with capture_logs() as logs:
        await board.post({SHARD: 3000})
    assert [entry["event"] for entry in logs] == ["到期通知未能写入，卡最迟在复查时被发现"]


class TestQueueManager:
    """Who lets a card be due soon says so; what is due later needs no notice."""

    @pytest.fixture
    async def queue(self, redis: Redis) -> PollingQueueManager:
        queue = PollingQueueManager(redis, recheck=timedelta(seconds=30))
        await queue.seal(EPOCH, queue.shards([7]))
        return queue

    async def test_a_card_added(self, queue: PollingQueueManager) -> None:
        now = await queue.now_ms()
        await queue.add_many(CARDDATA, 7, [(1, now + 20_000), (2, now + 40_000)])
        shard = queue.shard(CARDDATA, 7, 1)
        assert (await queue.take_notices(EPOCH)).dues == {shard: now + 20_000}

    async def test_a_card_hastened(self, queue: PollingQueueManager) -> None:
        now = await queue.now_ms()
        await queue.add_many(CARDDATA, 7, [(1, now + 3_600_000)])
        assert (await queue.take_notices(EPOCH)).dues == {}
        await queue.poll_now(CARDDATA, 7, [1])
        assert (await queue.take_notices(EPOCH)).dues == {queue.shard(CARDDATA, 7, 1): 0}

    @pytest.mark.parametrize(("later_ms", "told"), [(5_000, True), (3_600_000, False)])
    async def test_a_card_written_back(
        self, queue: PollingQueueManager, later_ms: int, *, told: bool
    ) -> None:
        shard = queue.shard(CARDDATA, 7, 1)
        await queue.add_many(CARDDATA, 7, [(1, 1000)])
        batch = await queue.claim(shard, epoch=EPOCH, limit=1, visibility=timedelta(minutes=1))
        await queue.take_notices(EPOCH)
        started = await queue.start(queue.shard(CARDDATA, 7, 1), 1, batch.claims[0].claim)
        assert started is not None
        due = started.now_ms + later_ms
        assert await queue.write_back(shard, 1, started.claim, due)
        assert (await queue.take_notices(EPOCH)).dues == ({shard: due} if told else {})
        await queue.close()
