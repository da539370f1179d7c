"""Rules change only into what the workers would take."""

import asyncio
from typing import Any

import pytest
from tests.polling.plant import HOURLY, add_account, add_rule
from tests.waiting import wait_until

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.errors import InvalidSnapshotError
from junhong_cmp.polling.rule_editor import RuleEdit, RuleRefusedError, guarded_edit, remove_rule, set_rule
from junhong_cmp.polling.tasks import TaskType

CARDDATA, CARDSTATUS = TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS


async def put(pool: Pool, name: str, *, dry_run: bool = False, **changes: Any) -> tuple[int, bool]:
    async with pool.acquire() as conn, guarded_edit(conn, dry_run=dry_run) as stored:
        return await set_rule(conn, stored, name, RuleEdit(**changes))


async def rules(pool: Pool) -> list[Any]:
    return [dict(row) for row in await pool.fetch("SELECT * FROM polling_config ORDER BY id")]


async def test_a_rule_is_made_then_changed_only_where_told(pool: Pool, account: CarrierAccount) -> None:
    made = await put(
        pool,
        "快",
        columns={"account_id": account.id},
        intervals={CARDDATA: {"interval_s": 60, "jitter": 0.2}},
    )
    changed = await put(
        pool,
        "快",
        columns={"priority": 7, "category": ""},
        intervals={CARDDATA: {"interval_s": 30}, CARDSTATUS: {"enabled": False}},
    )
    assert (made[0], changed) == (changed[0], (made[0], False))
    (rule,) = await rules(pool)
    assert (rule["priority"], rule["account_id"], rule["category"]) == (7, account.id, "")
    assert rule["intervals"] == {
        "carddata": {"interval_s": 30, "jitter": 0.2},
        "cardstatus": {"enabled": False},
    }
    await put(pool, f"#{made[0]}", columns={"name": "慢", "category": None}, intervals={CARDDATA: None})
    (rule,) = await rules(pool)
    assert (rule["name"], rule["category"], list(rule["intervals"])) == ("慢", None, ["cardstatus"])


@pytest.mark.parametrize(
    "fields",
    [{"interval_s": 0}, {"interval_s": 10**9}, {"interval_s": 60, "jitter": 0.5}, {"jitter": 0.1}, {"x": 1}],
)
async def test_what_the_workers_would_refuse_is_not_written(pool: Pool, fields: dict[str, Any]) -> None:
    await add_rule(pool)
    before = await rules(pool)
    version = await pool.fetchval("SELECT version FROM polling_config_version")
    with pytest.raises(InvalidSnapshotError, match="轮询配置无效"):
        await put(pool, "坏", intervals={CARDDATA: fields})
    assert await rules(pool) == before
    assert await pool.fetchval("SELECT version FROM polling_config_version") == version


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("x", {"card_status": "activ"}),
        ("x", {"real_name_status": "no"}),
        ("x", {"priority": 2**40}),
        ("#999", {}),
        (" ", {}),
        ("规则", {}),
    ],
    ids=["status", "real name", "priority", "no such id", "blank name", "two of the name"],
)
async def test_what_means_nothing_is_refused(pool: Pool, name: str, columns: dict[str, Any]) -> None:
    await add_rule(pool)
    await add_rule(pool)
    with pytest.raises(RuleRefusedError):
        await put(pool, name, columns=columns)
    assert len(await rules(pool)) == 2


async def test_a_broken_configuration_is_mended_step_by_step(pool: Pool) -> None:
    await add_rule(pool, {"carddata": {"interval_s": 0}})
    await add_rule(pool, {"carddata": {"interval_s": -1}})
    first, second = (row["id"] for row in await rules(pool))
    with pytest.raises(InvalidSnapshotError):
        await put(pool, "新", intervals={CARDDATA: {"interval_s": 60}})
    await put(pool, f"#{first}", intervals={CARDDATA: {"interval_s": 60}})
    async with pool.acquire() as conn, guarded_edit(conn) as stored:
        assert await remove_rule(conn, stored, f"#{second}") == second
    assert [row["id"] for row in await rules(pool)] == [first]
    await put(pool, "新", intervals={CARDDATA: {"interval_s": 60}})


async def test_a_dry_run_keeps_nothing(pool: Pool) -> None:
    await put(pool, "试", dry_run=True, intervals={CARDDATA: {"interval_s": 60}})
    assert await rules(pool) == []
    with pytest.raises(InvalidSnapshotError):
        await put(pool, "试", dry_run=True, intervals={CARDDATA: {"interval_s": 0}})


async def test_two_editors_follow_each_other(pool: Pool) -> None:
    """Each valid by itself; the second must be judged with the first one's change in it."""
    await add_rule(pool, HOURLY)
    async with pool.acquire() as conn, guarded_edit(conn) as stored:
        await set_rule(conn, stored, "甲", RuleEdit(intervals={CARDDATA: {"interval_s": 60}}))
        other = asyncio.create_task(put(pool, "甲", intervals={CARDSTATUS: {"interval_s": 60}}))

        async def waits() -> bool:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return bool(await pool.fetchval(sql))

        await wait_until(waits, description="the second editor to wait")
    _, is_new = await other
    assert not is_new
    assert [len(row["intervals"]) for row in await rules(pool)] == [3, 2]


async def test_accounts_of_unknown_zones_do_not_stand_in_the_way(pool: Pool) -> None:
    await add_account(pool, "lost", tz="Mars/Olympus")
    await put(pool, "好", intervals={CARDDATA: {"interval_s": 60}})


async def test_a_rule_without_any_interval_is_refused(pool: Pool, account: CarrierAccount) -> None:
    with pytest.raises(RuleRefusedError, match="没有任何间隔"):
        await put(pool, "空", columns={"account_id": account.id})
    assert await rules(pool) == []
    await put(pool, "快", intervals={CARDDATA: {"interval_s": 60}})
    with pytest.raises(RuleRefusedError, match="rules rm"):
        await put(pool, "快", intervals={CARDDATA: None})
    await put(pool, "快", columns={"priority": 3})
    assert (await rules(pool))[0]["intervals"] == {"carddata": {"interval_s": 60}}
