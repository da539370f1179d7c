"""``junhong card set`` as processes: limits in PostgreSQL, workers told."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from redis.asyncio import Redis
from tests.cli.console import Console
from tests.polling.plant import add_account, add_cards

from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.keys import ALL_QUEUES
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.card_payload import CardPayload
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType

CARD = "89860000000000000001"


@pytest.fixture
def card(redis_url: str, postgres_dsn: str) -> Console:
    return Console("card", redis_url, postgres_dsn)


async def told(redis: Redis) -> list[int]:
    """Cards whose usage workers are to hold against their limits."""
    if not await redis.exists(ALL_QUEUES):
        return []
    waiting = await Inspector(redis).list_tasks(CRON_QUEUE, TaskState.PENDING)
    assert {task.type for task in waiting} <= {TaskType.POLLING_PACKAGE}
    return sorted(CardPayload.decode(task.payload).card_id for task in waiting)


async def test_a_threshold_is_set_and_workers_hear_of_it(pool: Pool, redis: Redis, card: Console) -> None:
    first, second, _ = await add_cards(pool, await add_account(pool), 3)
    assert await card("set", first.iccid, "--threshold", "30MB") == "已修改 1 张卡：阈值 30MB\n"
    assert await told(redis) == [first.id]
    said = await card("set", first.iccid, second.iccid, "-t", "30MB", "--plan", "[5GB]")
    assert said == (
        "已修改 2 张卡：阈值 30MB，套餐 [5GB]\n"
        "提示：账号 demo 的套餐 [5GB] 未设流量，不限制用量；用 junhong plan set 设定\n"
    )
    again = await card("set", first.iccid, second.iccid, "-t", "30MB")
    assert again == "已修改 0 张卡：阈值 30MB，另有 2 张原本如此\n"
    assert await told(redis) == [first.id, first.id, second.id]
    rows = await pool.fetch("SELECT threshold_kb, plan FROM iot_card ORDER BY id")
    assert [tuple(row) for row in rows] == [(30_720, "[5GB]"), (30_720, "[5GB]"), (None, None)]
    await card("set", first.iccid, "--no-threshold", "--no-plan")
    assert (
        await pool.fetchval("SELECT count(*) FROM iot_card WHERE num_nonnulls(threshold_kb, plan) = 0") == 2
    )


async def test_a_dry_run_tells_what_would_be_stopped_and_changes_nothing(
    pool: Pool, redis: Redis, card: Console, tmp_path: Path
) -> None:
    account = await add_account(pool, protect_enabled=True)
    cards = await add_cards(pool, account, 3)
    await record_plan(pool, account.id, "S", 512)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute(
        "UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = id % 3 * 512", cycle
    )
    file = tmp_path / "cards.txt"
    file.write_text("\n".join(each.iccid for each in cards), encoding="utf-8")
    page = await card("set", "--file", str(file), "--threshold", "1MB", "-n")
    assert page == (
        "校验通过，未改动：将修改 3 张卡：阈值 1MB\n提示：其中 1 张已达停机条件，Worker 将逐张判定并停机\n"
    )
    assert await card.json("set", "-f", str(file), "--plan", "S", "--dry-run") == {
        "cards": 3,
        "changed": 3,
        "cards_to_stop": 2,
        "cards_to_resume": 0,
        "hints": [],
        "saved": False,
    }
    assert await told(redis) == []
    assert await pool.fetchval("SELECT count(*) FROM iot_card WHERE version > 1") == 0


async def test_cards_that_a_raised_threshold_brings_back_are_told(pool: Pool, card: Console) -> None:
    account = await add_account(pool, protect_enabled=True)
    cards = await add_cards(pool, account, 3)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute(
        "UPDATE iot_card SET status = 'suspended', cycle = $1, cycle_used_kb = 600, threshold_kb = 500,"
        " stop_reason = CASE WHEN id = $2 THEN 'manual' ELSE 'threshold' END",
        cycle,
        cards[2].id,
    )
    numbers = [each.iccid for each in cards]
    assert "其中" not in await card("set", *numbers, "--threshold", "600KB", "-n")
    said = await card("set", *numbers, "--threshold", "601KB")
    assert "提示：其中 2 张因用量停机、不再超限，Worker 将逐张判定并复机" in said


async def test_a_silent_redis_keeps_the_change_and_is_told(pool: Pool, card: Console) -> None:
    (one,) = await add_cards(pool, await add_account(pool), 1)
    card.env["JUNHONG_REDIS_URL"] = "redis://127.0.0.1:1"
    await card("set", one.iccid, "--threshold", "1GB", code=69)
    assert "已保存，但未能让 Worker 立即判定" in card.errors
    assert "JUNHONG_REDIS_URL" in card.errors
    assert await pool.fetchval("SELECT threshold_kb FROM iot_card") == 1024**2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((CARD,), 2, "给出要修改的内容"),
        (("--threshold", "1MB"), 2, "二者选一"),
        ((CARD, "--threshold", "1MB", "--no-threshold"), 2, "--threshold 与 --no-threshold 二者选一"),
        ((CARD, "--plan", "S", "--no-plan"), 2, "--plan 与 --no-plan 二者选一"),
        ((CARD, "--threshold", "100"), 2, "须为带单位的流量"),
        ((CARD, "--threshold", "0KB"), 2, "须不小于 1KB"),
        ((CARD, "--plan", " "), 2, "--plan 的值无效"),
        (("8986", "--threshold", "1MB"), 1, "不是有效的 ICCID"),
        ((CARD, "89869999999999999999", "-t", "1MB"), 1, "1 个卡号没有对应的卡：89869999999999999999"),
        (("--file", "absent.txt", "-t", "1MB"), 1, "文件无法读取：absent.txt：不存在"),
    ],
)
async def test_what_is_refused_is_told_and_not_written(
    pool: Pool, redis: Redis, card: Console, words: tuple[str, ...], code: int, said: str
) -> None:
    await add_cards(pool, await add_account(pool), 2)
    await card("set", *words, code=code)
    assert said in card.errors
    assert await pool.fetchval("SELECT count(*) FROM iot_card WHERE version > 1") == 0
    assert await told(redis) == []
