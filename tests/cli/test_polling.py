"""``junhong polling`` as processes against real services, and a real worker that follows."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from tests.polling.plant import add_account, add_cards, add_rule
from tests.worker_process import WorkerProcess

from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.hold_notice import post_hold


class Junhong:
    """The program as an operator types it."""

    def __init__(self, redis_url: str, postgres_dsn: str) -> None:
        self.env = {
            "JUNHONG_REDIS_URL": redis_url,
            "JUNHONG_POSTGRES_DSN": postgres_dsn,
            "COLUMNS": "240",
        }
        self.errors = ""

    async def __call__(self, *arguments: str, code: int = 0) -> str:
        async with WorkerProcess(self.env, arguments=("polling", *arguments)) as command:
            assert await command.wait_exit() == code, command.log_text + command.output
        self.errors = command.log_text
        return command.output

    async def json(self, *arguments: str, code: int = 0) -> Any:
        return orjson.loads(await self(*arguments, "--json", code=code))


@pytest.fixture
def junhong(redis_url: str, postgres_dsn: str) -> Junhong:
    return Junhong(redis_url, postgres_dsn)


@pytest.fixture
async def account(pool: Pool) -> CarrierAccount:
    return await add_account(pool)


async def test_rules_from_nothing_to_nothing(pool: Pool, account: CarrierAccount, junhong: Junhong) -> None:
    await add_cards(pool, account, 3, category="vip")
    await add_cards(pool, account, 2, first=50)
    words = ("set", "VIP", "--category", "vip", "--carddata", "1h", "--cardstatus", "off", "--jitter", "0.2")
    made = await junhong.json("rules", *words)
    assert (made["created"], made["saved"], made["cards"], made["unmatched"]) == (True, True, 5, 2)
    assert made["rules"][0]["cards"] == 3
    assert await junhong("rules", "set", "VIP", "--carddata", "30m") == (
        f"规则 #{made['id']} 已修改；匹配 3 张卡\n"
    )
    (rule,) = (await junhong.json("rules", "ls"))["rules"]
    assert rule["intervals"]["carddata"] == {"enabled": True, "interval_s": 1800, "jitter": 0.2}
    table = await junhong("rules", "ls")
    assert all(text in table for text in ("VIP", "分类=vip", "30m", "不轮询", "没有规则匹配的 2 张"))
    await junhong("rules", "set", "VIP", "--any", "category", "--account", account.code, "--name", "全部")
    (rule,) = (await junhong.json("rules", "check"))["rules"]
    assert (rule["name"], rule["category"], rule["account"], rule["cards"]) == ("全部", None, "demo", 5)
    assert "没有规则匹配的 0 张" in await junhong("rules", "check")
    assert "没有规则匹配的卡 5 张" in await junhong("rules", "rm", "全部", "--dry-run")
    assert (await junhong("rules", "rm", "全部")).splitlines() == [
        f"规则 #{made['id']} 已删除；没有规则匹配的卡 5 张",
        "流量：5 张卡不再有规则决定，不轮询",
        "卡状态：5 张卡不再有规则决定，不轮询",
    ]
    assert (await junhong.json("rules", "ls"))["rules"] == []


async def test_a_rule_says_which_others_it_outranks_and_which_outrank_it(
    pool: Pool, account: CarrierAccount, junhong: Junhong
) -> None:
    await add_rule(pool, {"carddata": {"interval_s": 60}}, priority=1_000)
    await add_cards(pool, account, 3)
    lines = (await junhong("rules", "set", "default", "--carddata", "1h", "--realname", "1d")).splitlines()
    assert lines[1:] == ["流量：3 张卡改由本规则决定，此前为规则 #1 规则（优先级 1000）"]
    rule = (await junhong.json("rules", "set", "default", "--priority", "2000"))["shifts"]
    assert rule == [{"type": "carddata", "way": "lost", "rule": 1, "cards": 3}]
    lines = (await junhong("rules", "set", "default", "--carddata", "2h")).splitlines()
    assert lines[1:] == ["流量：3 张卡仍由先于本规则的规则 #1 规则（优先级 1000）决定，--priority 可改"]
    lines = (await junhong("rules", "rm", "规则", "--dry-run")).splitlines()
    assert lines[1:] == ["流量：3 张卡改由规则 #2 default（优先级 2000）决定"]
    await junhong("rules", "rm", "规则")
    lines = (await junhong("rules", "set", "default", "--disable")).splitlines()
    assert lines[1:] == ["流量：3 张卡不再有规则决定，不轮询"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("set", "坏", "--carddata", "60d"), 1, "规则未保存：轮询配置无效"),
        (("set", "坏", "--carddata", "1h", "--jitter", "0.9"), 1, "jitter 必须在 0 到 0.45 之间"),
        (("set", "坏", "--status", "activ"), 1, "卡状态 'activ' 不存在"),
        (("set", "坏", "--account", "none"), 1, "账号 none 不存在，现有账号：demo"),
        (("set", "坏", "--carddata", "soon"), 2, "不是时长"),
        (("set", "坏", "--any", "colour"), 2, "条件只能为"),
        (("rm", "坏"), 1, "没有规则 坏"),
    ],
)
async def test_what_is_wrong_is_told_and_not_written(
    pool: Pool, account: CarrierAccount, junhong: Junhong, words: tuple[str, ...], code: int, said: str
) -> None:
    await junhong("rules", *words, code=code)
    assert said in junhong.errors
    assert await pool.fetchval("SELECT count(*) FROM polling_config") == 0


async def test_check_tells_what_the_workers_refuse_and_what_accounts_cannot_bear(
    pool: Pool, account: CarrierAccount, junhong: Junhong
) -> None:
    await add_rule(pool, {"carddata": {"interval_s": 1}})
    await pool.execute("UPDATE carrier_account SET qps = 1")
    await add_cards(pool, account, 5)
    too_much = "账号 demo 跟不上：规则需要每秒 5 次，账号允许 1 次"
    assert too_much in await junhong("rules", "check")
    assert too_much in await junhong(
        "rules", "set", "规则", "--priority", "7"
    )  # who causes it is told at once
    assert "跟不上" not in await junhong("rules", "set", "规则", "--carddata", "1m")
    await add_rule(pool, {"carddata": {"interval_s": 0}})
    page = await junhong("rules", "check", code=1)
    assert "interval_s 必须在 1 到" in page
    assert (await junhong.json("rules", "check", code=1))["problems"]
    assert "Worker 会拒绝这份配置" in await junhong("rules", "ls")


async def test_pause_and_resume(pool: Pool, account: CarrierAccount, junhong: Junhong) -> None:
    assert await junhong("pause", "demo", "--reason", "换证书") == "已暂停：账号 demo，到人工恢复为止\n"
    assert await pool.fetchval("SELECT pause_reason FROM carrier_account") == "manual: 换证书"
    page = await junhong("pause", "demo", "--type", "realname", "--for", "1h")
    assert page.startswith("已暂停：账号 demo 的 realname，到20")
    assert await junhong("resume", "demo") == "已恢复：账号 demo\n"
    assert await junhong("resume", "demo") == "没有生效中的暂停：账号 demo\n"
    assert await junhong("resume", "demo", "-t", "polling:realname") == "已恢复：账号 demo 的 realname\n"
    await junhong("pause", "nobody", code=1)
    assert "账号 nobody 不存在" in junhong.errors
    await junhong("pause", "demo", "--type", "weather", code=2)
    await junhong("pause", "demo", "--for", "0s", code=2)


async def test_pauses_tell_who_and_until_when(pool: Pool, account: CarrierAccount, junhong: Junhong) -> None:
    assert await junhong("pauses") == "没有生效中的暂停\n"
    await junhong("pause", "demo", "--type", "realname", "--for", "1h", "--reason", "[核对]")
    async with pool.acquire() as conn:
        await pause_account(conn, account.id, datetime.now(UTC) + timedelta(hours=2), "运营商限流")
    page = await junhong("pauses")
    for words in ("全部", "运营商", "运营商限流", "realname", "人工", "[核对]"):
        assert words in page
    whole, by_type = await junhong.json("pauses")
    assert whole["task_type"] is None
    assert whole["manual"] is False
    assert by_type["task_type"] == "polling:realname"
    assert by_type["manual"] is True
    assert by_type["reason"] == "[核对]"
    await junhong("resume", "demo")
    await junhong("pause", "demo", "-r", "换证书")
    assert [(row["manual"], row["reason"]) for row in await junhong.json("pauses")] == [
        (True, "换证书"),
        (True, "[核对]"),
    ]
    assert "人工恢复为止" in await junhong("pauses")


async def test_now(pool: Pool, redis: Redis, account: CarrierAccount, junhong: Junhong) -> None:
    await add_rule(pool)
    cards = await add_cards(pool, account, 3)
    found = await junhong.json("now", cards[0].iccid, "--type", "carddata")
    assert found == {"hastened": 1, "under_way": 0, "not_polled": 0, "resting": 0, "claims_held_s": None}
    assert await junhong.json("now", "--account", "demo") == {
        "hastened": 5,
        "under_way": 1,
        "not_polled": 0,
        "resting": 0,
        "claims_held_s": None,
    }
    assert "暂停" not in await junhong("now", "--account", "demo")
    await junhong("pause", "demo", "--type", "carddata")
    told = await junhong("now", "--account", "demo")
    assert "其中 3 次的账号或类型正在暂停，恢复后才会轮询；junhong polling pauses 列出暂停" in told
    await junhong("pause", "demo")
    assert (await junhong.json("now", cards[0].iccid))["resting"] == 2
    await post_hold(redis, timedelta(seconds=60))
    assert "主节点暂缓认领" in await junhong("now", "--account", "demo")
    assert 0 < (await junhong.json("now", "--account", "demo"))["claims_held_s"] <= 60
    await junhong("now", "89860099999999999999", code=1)
    assert "没有 ICCID 为" in junhong.errors
    await junhong("now", "12", code=1)
    await junhong("now", code=2)


async def test_now_takes_cards_from_a_file_as_its_siblings_do(
    pool: Pool, redis: Redis, account: CarrierAccount, junhong: Junhong, tmp_path: Path
) -> None:
    await add_rule(pool)
    cards = await add_cards(pool, account, 3)
    file = tmp_path / "cards.txt"
    await asyncio.to_thread(file.write_text, f"ICCID\n{cards[0].iccid}\n\n{cards[1].iccid}\n")
    found = await junhong.json("now", "--file", str(file), "--type", "carddata")
    assert (found["hastened"], found["under_way"]) == (2, 0)
    await asyncio.to_thread(file.write_text, f"{cards[0].iccid}\n12\n")
    await junhong("now", "--file", str(file), code=1)
    assert "第 2 行" in junhong.errors
    for words in ((cards[0].iccid, "--file", str(file)), ("--account", "demo", "--file", str(file))):
        await junhong("now", *words, code=2)
    await junhong("now", "--account", "demo", cards[0].iccid, code=2)


async def test_a_running_worker_takes_rules_and_pauses_over_within_three_seconds(
    pool: Pool, account: CarrierAccount, junhong: Junhong
) -> None:
    env = {**junhong.env, "JUNHONG_WORKER_ROLE": "leader", "JUNHONG_LOG_LEVEL": "debug"}
    async with WorkerProcess(env) as worker:
        await worker.wait_started()
        known = len(worker.find("轮询配置已生效"))
        loop = asyncio.get_running_loop()
        for number, words in enumerate(
            (("rules", "set", "新", "--carddata", "1h"), ("pause", "demo", "--type", "carddata")), start=1
        ):
            await junhong(*words)
            began = loop.time()  # the command has ended, so its change is committed
            await worker.wait_for("轮询配置已生效", count=known + number, timeout=3)
            assert loop.time() - began < 3
        assert await worker.stop() == 0
