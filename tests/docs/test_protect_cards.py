"""The how-to's commands, run in their order beside a worker, stop a card and bring it back."""

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.scenarios.platform import Platform
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.polling.card_tasks import CardTasks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "protect-cards.md"
OVER_KB = 40_000


def commands() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


class Page:
    """The page as an operator follows it: line by line, each as written."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._rest = commands()

    async def next(self, *words: str) -> str:
        program, *arguments = self._rest.pop(0)
        assert program == "junhong"
        assert tuple(arguments[: len(words)]) == words
        env = self._platform.environment(COLUMNS="200")
        async with WorkerProcess(env, arguments=arguments, cwd=self._platform.folder) as command:
            assert await command.wait_exit() == 0, command.log_text
        return command.output

    def is_read(self) -> bool:
        return not self._rest


async def plant(platform: Platform) -> Card:
    """Make the page's account, with a card that has used more than its plan will contain."""
    await platform.pool.execute("UPDATE carrier_account SET code = 'cmcc-01', operation_min_gap_s = 0")
    (card,) = await platform.issue_cards(1)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await platform.pool.execute(
        "UPDATE iot_card SET plan = '30M 月包', status = 'active', cycle = $1, cycle_used_kb = $2",
        cycle,
        OVER_KB,
    )
    return card


async def test_the_page_stops_a_card_and_brings_it_back(platform: Platform) -> None:
    card, page = await plant(platform), Page(platform)
    tasks = CardTasks(Client(platform.redis))

    async def is_status(status: str) -> bool:
        return bool(await platform.pool.fetchval("SELECT status = $1 FROM iot_card", status))

    async def stop_reason() -> str:
        return str(await platform.pool.fetchval("SELECT stop_reason FROM iot_card"))

    await platform.join()
    assert "未设" in await page.next("plan", "ls")
    assert "未设 → 30MB，1 张卡" in await page.next("plan", "set")
    assert "容量 未设 → 100GB，停机线 未设 → 95GB" in await page.next("pool", "set")
    assert "已放入流量池 共享池：1 张卡" in await page.next("pool", "put", "cmcc-01", "共享池", card.iccid)
    assert "已修改 1 张卡：阈值 20GB" in await page.next("card", "set", card.iccid)
    assert "39.1MB" in await page.next("pool", "ls")
    trial = await page.next("account", "set")
    assert "protect_enabled  false → true" in trial
    assert "现有 1 张卡已达停机条件" in trial
    assert not await platform.pool.fetchval("SELECT protect_enabled FROM carrier_account")
    assert "已修改" in await page.next("account", "set")

    async def is_stopped() -> bool:
        await tasks.protect([card.id])  # as the five-minute check does
        return await is_status("suspended")

    await wait_until(is_stopped, timeout=30, description="the card is stopped")
    assert await stop_reason() == "over_plan"
    shown = await page.next("account", "show", "cmcc-01")
    assert "超套餐 1" in shown
    assert "超套餐" in await page.next("card", "show", card.iccid)
    await page.next("card", "export")
    assert card.iccid in (platform.folder / "suspended.csv").read_text(encoding="utf-8-sig")
    await page.next("card", "resume", card.iccid)
    await wait_until(lambda: is_status("active"), timeout=30, description="the card is back")
    assert "protect_enabled  true → false" in await page.next("account", "set")
    assert page.is_read()
