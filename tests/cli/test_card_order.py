"""Orders by hand reach the queue once, under their request id."""

import asyncio

import pytest
from redis.asyncio import Redis
from tests.cards.inventory import add_account, add_cards
from tests.polling.waiting_orders import payloads
from tests.worker_process import COMMAND, environment

from junhong_cmp.cards.model import StopReason
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.operation_rules import OperationKind


@pytest.fixture
def env(postgres_dsn: str, redis_url: str) -> dict[str, str]:
    return environment(JUNHONG_POSTGRES_DSN=postgres_dsn, JUNHONG_REDIS_URL=redis_url)


async def run(env: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "card", *arguments, env=env, stdout=pipe, stderr=pipe
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_an_order_is_handed_to_the_workers_once(pool: Pool, redis: Redis, env: dict[str, str]) -> None:
    first, second = await add_cards(pool, await add_account(pool), 2)
    for _ in range(2):
        code, out, _ = await run(env, "stop", first.iccid, "--reason", "violation", "--request-id", "case-17")
        assert (code, "请求号 case-17" in out) == (0, True)
    code, out, _ = await run(env, "resume", second.iccid[:19])
    assert (code, "已下达复机指令" in out) == (0, True)
    stop, resume = await payloads(redis)
    assert stop.order is not None
    assert stop == CardPayload(
        first.id, Order(OperationKind.STOP, "case-17", StopReason.VIOLATION, stop.order.requested_by)
    )
    assert resume.order is not None
    assert (resume.card_id, resume.order.kind) == (second.id, OperationKind.RESUME)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("stop", "89860099999999999999"), 1, "没有 ICCID"),
        (("stop", "not a number"), 1, "不是有效的 ICCID："),
        (("stop", "89860000000000000000", "--reason", "none"), 2, "原因不能为 none"),
        (("stop", "89860000000000000000", "--reason", "because"), 2, "--reason"),
    ],
)
async def test_what_cannot_be_ordered_is_refused(
    pool: Pool, redis: Redis, env: dict[str, str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    await add_cards(pool, await add_account(pool), 1)
    ended, _, err = await run(env, *arguments)
    assert (ended, words in err) == (code, True), err
    assert await redis.keys("asynq:{default}:t:*") == []
