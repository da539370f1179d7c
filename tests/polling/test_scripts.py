"""Every branch of every script, on a real server."""

import pytest
from redis.asyncio import Redis

from junhong_cmp.polling import keys
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.shard_scripts import Claim, ClaimBatch, ShardCounts, ShardScripts, Started
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import TaskType

SHARD = ShardId(TaskType.POLLING_CARDDATA, 7, 0)
OTHER = ShardId(TaskType.POLLING_CARDDATA, 7, 1)
EPOCH = 5


@pytest.fixture
async def scripts(redis: Redis) -> ShardScripts:
    scripts = ShardScripts(redis)
    await scripts.seal([SHARD, OTHER], epoch=EPOCH)
    return scripts


async def now(redis: Redis) -> int:
    seconds, microseconds = await redis.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


async def score(redis: Redis, card: int, shard: ShardId = SHARD) -> int | None:
    found = await redis.zscore(keys.shard_due(shard), str(card))
    return None if found is None else int(found)


async def claim(scripts: ShardScripts, *, limit: int = 10, visibility_ms: int = 30_000) -> ClaimBatch:
    (batch,) = await scripts.claim({SHARD: limit}, epoch=EPOCH, visibility_ms=visibility_ms)
    assert isinstance(batch, ClaimBatch), batch
    return batch


async def start(
    scripts: ShardScripts, *pairs: tuple[int, int], timeout_ms: int = 60_000
) -> list[Started | None]:
    (reply,) = await scripts.start({SHARD: pairs}, timeout_ms=timeout_ms)
    assert not isinstance(reply, Exception), reply
    return reply


class TestClaim:
    async def test_takes_what_is_due_oldest_first_and_leaves_it_in_the_set(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        at = await now(redis)
        await scripts.add({SHARD: [at - 10, 1, at - 30, 2, at - 20, 3, at + 60_000, 4]})
        batch = await claim(scripts, limit=2)
        assert [(one.card_id, one.due) for one in batch.claims] == [(2, at - 30), (3, at - 20)]
        claims = {one.claim for one in batch.claims}
        assert claims == {await score(redis, 2)}
        assert at + 30_000 <= claims.pop() <= at + 32_000
        assert await score(redis, 1) == at - 10
        assert batch.next_due_ms == at - 10
        assert 0 <= batch.now_ms - at < 2000

    async def test_a_shard_that_has_forgotten_a_claim_refuses(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        at = await now(redis)
        await scripts.add({SHARD: [at, 1, at, 2]})
        known = (await claim(scripts, limit=1)).claims[0].claim
        before = await score(redis, 2)
        terms = {"epoch": EPOCH, "visibility_ms": 30_000}
        (refused,) = await scripts.claim({SHARD: 1}, **terms, given={SHARD: known + 1})
        assert isinstance(refused, FencedError)
        assert refused.fence is None
        assert await score(redis, 2) == before
        (batch,) = await scripts.claim({SHARD: 1}, **terms, given={SHARD: known})
        assert isinstance(batch, ClaimBatch)
        assert [one.card_id for one in batch.claims] == [2]

    async def test_tells_the_next_due_time_when_nothing_is_due(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        at = await now(redis)
        await scripts.add({SHARD: [at + 60_000, 1]})
        batch = await claim(scripts)
        assert (list(batch.claims), batch.next_due_ms) == ([], at + 60_000)

    async def test_an_empty_shard_has_no_next_due_time(self, scripts: ShardScripts) -> None:
        batch = await claim(scripts)
        assert (list(batch.claims), batch.next_due_ms) == ([], None)

    async def test_limit_zero_only_looks(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        batch = await claim(scripts, limit=0)
        assert (list(batch.claims), batch.next_due_ms) == ([], 1000)

    @pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
    async def test_another_epoch_is_refused_and_changes_nothing(
        self, redis: Redis, scripts: ShardScripts, epoch: int
    ) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (refused,) = await scripts.claim({SHARD: 10}, epoch=epoch, visibility_ms=1000)
        assert isinstance(refused, FencedError)
        assert refused.fence == EPOCH
        assert await score(redis, 1) == 1000

    async def test_a_shard_without_a_fence_is_refused(self, redis: Redis, scripts: ShardScripts) -> None:
        await redis.delete(keys.shard_fence(SHARD))
        (refused,) = await scripts.claim({SHARD: 10}, epoch=EPOCH, visibility_ms=1000)
        assert isinstance(refused, FencedError)
        assert refused.fence is None

    async def test_one_refused_shard_does_not_fail_the_others(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        await redis.delete(keys.shard_fence(SHARD))
        await scripts.add({OTHER: [1000, 2]})
        refused, batch = await scripts.claim({SHARD: 1, OTHER: 1}, epoch=EPOCH, visibility_ms=1000)
        assert isinstance(refused, FencedError)
        assert isinstance(batch, ClaimBatch)
        assert [one.card_id for one in batch.claims] == [2]

    async def test_foreign_members_are_taken_out_and_reported(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        await redis.zadd(keys.shard_due(SHARD), {"nan": 1, "-3": 2, "007": 3, "9": 4})
        batch = await claim(scripts)
        assert [one.card_id for one in batch.claims] == [9]
        assert sorted(batch.foreign) == [b"-3", b"007", b"nan"]
        assert await redis.zcard(keys.shard_due(SHARD)) == 1

    async def test_an_endless_score_is_no_due_time(self, redis: Redis, scripts: ShardScripts) -> None:
        await redis.zadd(keys.shard_due(SHARD), {"1": float("inf")})
        assert (await claim(scripts)).next_due_ms is None

    async def test_claims_of_the_shard_strictly_grow(self, redis: Redis, scripts: ShardScripts) -> None:
        given: list[int] = []
        for _ in range(5):
            await redis.zadd(keys.shard_due(SHARD), {"1": 1})
            (one,) = (await claim(scripts)).claims
            given.append(one.claim)
        assert given == sorted(set(given))


class TestStart:
    async def test_gives_a_new_claim_once(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts)).claims
        (started,) = await start(scripts, (1, one.claim))
        assert started is not None
        assert started.claim > one.claim
        assert started.claim == await score(redis, 1)
        assert await start(scripts, (1, one.claim)) == [None]

    async def test_starts_once_even_within_one_batch(self, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts)).claims
        started = await start(scripts, (1, one.claim), (1, one.claim))
        assert [bool(each) for each in started] == [True, False]

    async def test_a_removed_card_does_not_start(self, redis: Redis, scripts: ShardScripts) -> None:
        assert await start(scripts, (1, 1000)) == [None]
        assert await score(redis, 1) is None

    async def test_the_new_claim_exceeds_one_that_reaches_further(self, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts, visibility_ms=600_000)).claims
        (started,) = await start(scripts, (1, one.claim), timeout_ms=1000)
        assert started is not None
        assert started.claim == one.claim + 1


class TestWriteBack:
    async def test_moves_the_card_to_its_next_due_time(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts)).claims
        assert await scripts.write_back({SHARD: [(1, one.claim, 77_000)]}) == [[True]]
        assert await score(redis, 1) == 77_000

    async def test_a_superseded_claim_is_refused(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts)).claims
        (started,) = await start(scripts, (1, one.claim))
        assert await scripts.write_back({SHARD: [(1, one.claim, 77_000)]}) == [[False]]
        assert started is not None
        assert await score(redis, 1) == started.claim

    async def test_a_removed_card_is_not_resurrected(self, redis: Redis, scripts: ShardScripts) -> None:
        assert await scripts.write_back({SHARD: [(1, 5, 77_000)]}) == [[False]]
        assert await score(redis, 1) is None


class TestAddAndRemove:
    async def test_add_keeps_the_score_of_a_card_that_is_there(
        self, redis: Redis, scripts: ShardScripts
    ) -> None:
        assert await scripts.add({SHARD: [1000, 1, 2000, 2]}) == [2]
        assert await scripts.add({SHARD: [9000, 1, 3000, 3]}) == [1]
        assert await score(redis, 1) == 1000

    async def test_remove_without_condition(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        assert await scripts.remove({SHARD: [(1, ""), (2, "")]}) == [[True, False]]
        assert await score(redis, 1) is None

    async def test_remove_only_by_its_score(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1, 2000, 2]})
        assert await scripts.remove({SHARD: [(1, 999), (2, 2000)]}) == [[False, True]]
        assert await score(redis, 1) == 1000


class TestHasten:
    async def test_a_waiting_card_becomes_due_now(self, redis: Redis, scripts: ShardScripts) -> None:
        at = await now(redis)
        await scripts.add({SHARD: [at + 3_600_000, 1]})
        assert await scripts.hasten({SHARD: [(1, "")]}) == [[True]]
        assert 0 <= (await score(redis, 1) or 0) - at < 2000

    async def test_a_claimed_card_is_left_alone(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [1000, 1]})
        (one,) = (await claim(scripts)).claims
        assert await scripts.hasten({SHARD: [(1, "")]}) == [[False]]
        assert await score(redis, 1) == one.claim

    async def test_a_card_due_no_later_is_left_alone(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.add({SHARD: [5000, 1]})
        assert await scripts.hasten({SHARD: [(1, 6000), (2, 6000)]}) == [[False, False]]
        assert await scripts.hasten({SHARD: [(1, 4000)]}) == [[True]]
        assert await score(redis, 1) == 4000


class TestSeal:
    async def test_raises_the_fence_and_may_be_repeated(self, redis: Redis, scripts: ShardScripts) -> None:
        await scripts.seal([SHARD], epoch=EPOCH + 1)
        await scripts.seal([SHARD], epoch=EPOCH + 1)
        assert await redis.get(keys.shard_fence(SHARD)) == b"6"

    async def test_never_lowers_it(self, redis: Redis, scripts: ShardScripts) -> None:
        (refused,) = await scripts.seal([SHARD], epoch=EPOCH - 1)
        assert isinstance(refused, FencedError)
        assert refused.fence == EPOCH
        assert await redis.get(keys.shard_fence(SHARD)) == b"5"

    @pytest.mark.parametrize("fence", ["", "abc", "1e300", "-3", "9" * 30])
    async def test_what_is_no_epoch_obeys_nobody(
        self, redis: Redis, scripts: ShardScripts, fence: str
    ) -> None:
        await redis.set(keys.shard_fence(SHARD), fence)
        (refused,) = await scripts.claim({SHARD: 1}, epoch=EPOCH, visibility_ms=1000)
        assert isinstance(refused, FencedError)
        assert refused.fence is None
        assert await scripts.seal([SHARD], epoch=EPOCH) == [None]
        assert await redis.get(keys.shard_fence(SHARD)) == b"5"


async def test_count_tells_all_due_and_overdue(redis: Redis, scripts: ShardScripts) -> None:
    at = await now(redis)
    await scripts.add({SHARD: [at - 90_000, 1, at - 5_000, 2, at + 90_000, 3]})
    assert await scripts.count([SHARD, OTHER], overdue_ms=60_000) == [ShardCounts(3, 2, 1), ShardCounts()]


async def test_an_error_on_one_shard_is_that_shards_reply(redis: Redis, scripts: ShardScripts) -> None:
    await redis.set(keys.shard_due(SHARD), "not a set")
    broken, fine = await scripts.add({SHARD: [1000, 1], OTHER: [1000, 2]})
    assert isinstance(broken, Exception)
    assert fine == 1


async def test_a_claim_is_a_plain_value(scripts: ShardScripts) -> None:
    await scripts.add({SHARD: [1000, 1]})
    (one,) = (await claim(scripts)).claims
    assert one == Claim(card_id=1, claim=one.claim, due=1000)
