"""Orders by hand reach the queue once, under their request id."""

import asyncio
from datetime import UTC, datetime

import pytest
from redis.asyncio import Redis
from tests.cards.inventory import add_account, add_cards
from tests.polling.waiting_orders import payloads
from tests.worker_process import COMMAND, environment

from junhong_cmp.cards.model import StopReason
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.operation_rules import OperationKind
from junhong_cmp.polling.operation_store import NewOperation, place_operation
from junhong_cmp.polling.pause_store import pause_polling


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


async def _place(pool: Pool, card_id: int, request_id: str, *, kind: OperationKind) -> None:
    new = NewOperation(
        card_id=card_id, kind=kind, reason="manual", request_id=request_id, cycle=None, requested_by="王工"
    )
    await place_operation(pool, new, datetime.now(UTC))


async def test_an_operation_that_comes_first_is_told(pool: Pool, redis: Redis, env: dict[str, str]) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    code, out, _ = await run(env, "stop", card.iccid)
    assert (code, len(out.splitlines())) == (0, 1), "nothing stands before the first"

    await _place(pool, card.id, "case-17", kind=OperationKind.STOP)
    _, out, _ = await run(env, "resume", card.iccid)
    assert "提示：该卡有停机操作尚未结束（请求号 case-17，" in out
    assert "尚未发出）；此指令排在其后，每分钟再看一次，且两次发送至少间隔 3m" in out
    assert f"junhong card show {card.iccid}" in out
    await pool.execute("UPDATE card_operation SET sent_at = now(), status = 'sent'")
    assert "等待运营商的结果）" in (await run(env, "resume", card.iccid))[1]
    _, out, _ = await run(env, "stop", card.iccid, "--request-id", "case-17")
    assert "提示：此请求号已于" in out
    assert "下达过（停机，尚未结束），不再另行执行" in out

    await pool.execute("UPDATE card_operation SET status = 'done'")
    _, out, _ = await run(env, "resume", card.iccid)
    assert "提示：距该卡上次停复机不足 3m，此指令约 " in out
    assert "（停机，完成）" in (await run(env, "stop", card.iccid, "--request-id", "case-17"))[1]
    await pool.execute("UPDATE card_operation SET sent_at = now() - interval '1 hour'")
    _, out, _ = await run(env, "resume", card.iccid)
    assert "提示" not in out


async def test_an_account_that_rests_or_is_off_is_told(pool: Pool, redis: Redis, env: dict[str, str]) -> None:
    account = await add_account(pool)
    (card,) = await add_cards(pool, account, 1)
    async with pool.acquire() as conn:
        await pause_polling(conn, account.id, None, None, "对账")
    assert f"提示：账号 {account.code} 正在暂停，到人工恢复为止" in (await run(env, "stop", card.iccid))[1]
    await pool.execute("UPDATE carrier_account SET polling_enabled = false")
    code, out, _ = await run(env, "stop", card.iccid)
    assert (code, "已停用，此指令将记为失败而不发送" in out) == (0, True)
