import pytest
from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ResponseError

from junhong_cmp.asynq.scripting import LuaScript

COUNT = LuaScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")


async def test_a_script_is_sent_in_full_only_when_the_server_lacks_it(redis: Redis) -> None:
    with pytest.raises(NoScriptError):
        await redis.evalsha(COUNT.sha1, 1, "n", 1)
    assert await COUNT.run(redis, ["n"], [2]) == 2
    assert await redis.evalsha(COUNT.sha1, 1, "n", 1) == 3
    await redis.script_flush()
    assert await COUNT.run(redis, ["n"], [2]) == 5


async def test_many_calls_in_one_round_trip(redis: Redis) -> None:
    await redis.set("bad", "x")
    for _ in range(2):  # the server lacks the script first, then has it
        await redis.delete("a", "b")
        replies = await COUNT.run_many(redis, [(["a"], [1]), (["bad"], [1]), (["b"], [2]), (["a"], [1])])
        assert [reply for reply in replies if not isinstance(reply, Exception)] == [1, 2, 2]
        assert isinstance(replies[1], ResponseError)
    assert await COUNT.run_many(redis, []) == []


def test_shared_functions_come_first() -> None:
    script = LuaScript.load("junhong_cmp.asynq", "_lock", "delete_expired_completed")
    assert script.source.index("local function delete_task") < script.source.index("delete_task(ARGV[1]")
