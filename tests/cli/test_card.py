import asyncio
from pathlib import Path

import asyncpg
import orjson
import pytest
from tests.imports.card_files import iccid
from tests.worker_process import COMMAND, environment

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.store import insert_cards

NOT_ASKED = "redis://127.0.0.1:1/0"


class Command:
    """Runs ``junhong card`` against the test's database."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._env = environment(JUNHONG_POSTGRES_DSN=dsn, JUNHONG_REDIS_URL=NOT_ASKED)
        self._folder = folder

    async def __call__(self, *arguments: str) -> tuple[int, bytes, str]:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "card",
            *arguments,
            env=self._env,
            cwd=self._folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out, err.decode()


@pytest.fixture
async def card(pool: asyncpg.Pool, postgres_dsn: str, tmp_path: Path) -> Command:
    async with pool.acquire() as conn, conn.transaction():
        account = await record_account(conn, NewAccount(code="demo", name="演示", carrier=Carrier.CMCC))
        await insert_cards(conn, account.id, [NewCard(iccid=iccid(number)) for number in range(3)])
    return Command(postgres_dsn, tmp_path)


async def test_the_list_goes_to_standard_output_or_a_file(card: Command, tmp_path: Path) -> None:
    code, out, err = await card("export", "--account", "demo")
    assert (code, err) == (0, "已导出 3 张卡：标准输出\n")
    assert out.decode("utf-8-sig").count("\r\n") == 4
    code, _, err = await card("export", "--out", "cards.xlsx")
    assert (code, err) == (0, "已导出 3 张卡：cards.xlsx\n")
    assert (tmp_path / "cards.xlsx").read_bytes().startswith(b"PK")
    code, out, _ = await card("export", "--format", "xlsx", "--status", "未知")
    assert (code, out[:2]) == (0, b"PK")


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("export -a nope", 1, "账号不存在：nope"),
        ("export -s broken", 2, "状态只能为 unknown、"),
        ("export -o cards.pdf", 2, "格式只能为 csv 或 xlsx"),
        (
            "export -o absent/cards.csv",
            1,
            "--out 无法写入 absent/cards.csv：文件夹 absent 不存在，请先建立（mkdir -p absent）或换一个位置",
        ),
        ("export --format csv -o .", 1, "--out 无法写入 .：是文件夹而不是文件，请加上文件名"),
        (f"show {iccid(9)}", 1, f"没有 ICCID 为 {iccid(9)} 的卡"),
        ("show 8986", 1, "不是有效的 ICCID"),
    ],
)
async def test_a_refusal_is_one_sentence(card: Command, line: str, code: int, reason: str) -> None:
    ended, out, err = await card(*line.split())
    assert (ended, out) == (code, b"")
    assert reason in err
    assert "Traceback" not in err


async def test_one_card_is_shown(card: Command, pool: asyncpg.Pool) -> None:
    await pool.execute(
        "INSERT INTO card_usage_daily (card_id, day, used_kb)"
        " SELECT id, '2026-03-01', 123456 FROM iot_card WHERE iccid = $1",
        iccid(1),
    )
    await pool.execute(
        "UPDATE iot_card SET threshold_kb = 512000, cycle_used_kb = 398000, last_reading_kb = 1600000"
        " WHERE iccid = $1",
        iccid(1),
    )
    await pool.execute(
        "INSERT INTO usage_anomaly (card_id, kind, reading_at, cycle, expected_kb, reading_kb)"
        " SELECT id, 'rollback', now(), '2026-03', 398001, 398000 FROM iot_card WHERE iccid = $1",
        iccid(1),
    )
    code, out, _ = await card("show", iccid(1)[:19])
    text = out.decode()
    assert code == 0
    for part in (iccid(1), "demo 演示（中国移动）", "120.6MB", "从未", "操作：无", "状态历史：无"):
        assert part in text
    for part in ("本周期用量", "388.7MB（周期 -，卡的阈值 500MB）", "1.5GB，读数时间", "398,001 KB"):
        assert part in text, part
    code, out, _ = await card("show", iccid(1), "--json")
    shown = orjson.loads(out)
    assert (code, shown["card"]["iccid"], shown["days"][0]["used_kb"]) == (0, iccid(1), 123456)


async def test_who_reads_no_further_gets_no_complaint(card: Command, postgres_dsn: str) -> None:
    process = await asyncio.create_subprocess_shell(
        f"{' '.join(COMMAND)} card export | true",
        env=environment(JUNHONG_POSTGRES_DSN=postgres_dsn, JUNHONG_REDIS_URL=NOT_ASKED),
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert b"Traceback" not in err
    assert "错误" not in err.decode()
