"""``junhong account set`` and ``add`` as processes against a real PostgreSQL, and a worker that follows."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.cli.console import Console
from tests.polling.plant import add_account, add_cards, add_rule
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.cards.account_store import NewAccount, described, find_account, pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.config_store import find_version


@pytest.fixture
def account_command(redis_url: str, postgres_dsn: str) -> Console:
    return Console("account", redis_url, postgres_dsn)


@pytest.fixture
async def account(pool: Pool) -> CarrierAccount:
    return await add_account(pool, qps=50.0, concurrency=64)


async def stored(pool: Pool, code: str = "demo") -> NewAccount:
    async with pool.acquire() as conn:
        found = await find_account(conn, code)
    assert found is not None
    return described(found)


async def version(pool: Pool) -> int:
    async with pool.acquire() as conn:
        return await find_version(conn)


async def test_set_changes_what_is_given_and_says_so(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    words = ("set", "demo", "protect_enabled=true", "qps=2.5", "monthly_quota=1000000", "name=移动 一号")
    dry = await account_command(*words, "--dry-run")
    assert dry.splitlines()[0] == "账号 demo 校验通过，未改动："
    assert await stored(pool) == described(account)
    made = await account_command(*words)
    assert made.splitlines()[0] == "账号 demo 已修改："
    assert dry.splitlines()[1:] == made.splitlines()[1:]
    assert "  protect_enabled  false → true" in made
    new = await stored(pool)
    assert (new.protect_enabled, new.qps, new.monthly_quota, new.name) == (True, 2.5, 1_000_000, "移动 一号")
    assert new.concurrency == 64


async def test_what_changes_nothing_is_not_written(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    before = await version(pool)
    assert await account_command("set", "demo", "qps=50", "polling_enabled=true") == "账号 demo 没有变化\n"
    found = await account_command.json("set", "demo", "qps=50")
    assert found == {"account": "demo", "saved": False, "changes": {}, "cards_to_stop": 0, "hints": []}
    assert await version(pool) == before


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("set", "demo", "qps=0", "billing_day=0", "protect=true"),
            1,
            ["qps=0：", "billing_day=0：", "没有键 protect，"],
        ),
        (("set", "demo", "driver=ctcc", "batch_size=50"), 1, ["没有批量接口"]),
        (("set", "nobody", "qps=1"), 1, ["账号 nobody 不存在，现有账号：demo"]),
        (("set", "demo"), 2, ["protect_enabled"]),
        (("add", "demo", "--driver", "generic"), 1, ["账号 demo 已存在"]),
        (("add", "new", "--driver", "pigeon"), 2, ["generic、onelink"]),
        (("add", "new"), 2, ["--driver"]),
        (("add", "n w", "--driver", "generic"), 2, ["不含空白"]),
        (("add", "new", "--driver", "onelink", "batch_size=101", "tz=Mars"), 1, ["1 到 100", "tz=Mars"]),
    ],
)
async def test_what_is_refused_is_told_and_not_written(
    pool: Pool,
    account: CarrierAccount,
    account_command: Console,
    words: tuple[str, ...],
    code: int,
    said: list[str],
) -> None:
    await account_command(*words, code=code)
    assert [text for text in said if text not in account_command.errors] == []
    assert await stored(pool) == described(account)
    assert await pool.fetchval("SELECT count(*) FROM carrier_account") == 1


async def test_add_takes_the_drivers_defaults(pool: Pool, account_command: Console) -> None:
    words = ("add", "cucc-01", "--driver", "unicom", "name=联通一号", "base_url=https://gw.example", "qps=20")
    assert "校验通过，未新建" in await account_command(*words, "-n")
    assert await pool.fetchval("SELECT count(*) FROM carrier_account") == 0
    page = await account_command(*words)
    assert page.startswith("账号 cucc-01 已新建：\n")
    assert "  billing_day=27\n" in page
    assert "提示：主机 gw.example 须在" in page
    new = await stored(pool, "cucc-01")
    assert (new.carrier, new.driver, new.name) == ("cucc", "unicom", "联通一号")
    assert (new.billing_day, new.usage_unit, new.batch_size, new.qps) == (27, "MB", 50, 20)
    assert (new.protect_enabled, new.stop_on_expiry) == (False, False)


async def test_a_rule_switched_on_tells_how_many_cards_it_finds(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    await add_cards(pool, account, 4)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute("UPDATE iot_card SET status = 'active', threshold_kb = 10, cycle = $1", cycle)
    await pool.execute("UPDATE iot_card SET cycle_used_kb = 10 WHERE id % 2 = 0")
    await pool.execute("UPDATE iot_card SET expires_at = now() - interval '1 day' WHERE id % 4 = 1")
    found = await account_command.json("set", "demo", "protect_enabled=true", "-n")
    assert (found["cards_to_stop"], found["saved"]) == (2, False)
    assert found["changes"] == {"protect_enabled": {"old": "false", "new": "true"}}
    assert "现有 3 张卡" in await account_command(
        "set", "demo", "protect_enabled=true", "stop_on_expiry=true"
    )
    assert "张卡" not in await account_command("set", "demo", "qps=7")


async def test_a_pause_in_force_stays_and_one_at_the_same_moment_waits(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    async with pool.acquire() as conn, conn.transaction():
        assert await pause_account(conn, account.id, until, "throttled")  # locks account, then configuration
        editing = asyncio.create_task(account_command("set", "demo", "qps=3"))
        async with pool.acquire() as other:
            waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
            await wait_until(lambda: other.fetchval(waiting), timeout=20, description="the editor waits")
    assert "50 → 3" in await editing
    async with pool.acquire() as conn:
        found = await find_account(conn, "demo")
    assert found is not None
    assert (found.qps, found.paused_until, found.pause_reason) == (3, until, "throttled")


async def test_a_configuration_the_workers_refuse_is_not_made_worse(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    await add_rule(pool, {"carddata": {"interval_s": 0}})
    await account_command("set", "demo", "qps=3", code=1)
    assert "interval_s 必须在 1 到" in account_command.errors


async def test_a_running_worker_takes_the_change_over_within_three_seconds(
    pool: Pool, account: CarrierAccount, account_command: Console
) -> None:
    env = {**account_command.env, "JUNHONG_WORKER_ROLE": "leader", "JUNHONG_LOG_LEVEL": "debug"}
    async with WorkerProcess(env) as worker:
        await worker.wait_started()
        known = len(worker.find("轮询配置已生效"))
        await account_command("set", "demo", "protect_enabled=true", "qps=3")
        await worker.wait_for("轮询配置已生效", count=known + 1, timeout=3)
        assert await worker.stop() == 0
