import asyncio
import os
import random
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import IO, TypeAlias

import psutil
import pytest
from structlog.testing import capture_logs
from tests.imports import workbooks
from tests.imports.card_files import iccid
from tests.waiting import wait_until

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.imports.errors import FileRefusedError, ParserNotStartedError
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.limits import ImportLimits, ParserLimits, WorkbookLimits
from junhong_cmp.imports.parser_frames import FrameKind, decode_rows
from junhong_cmp.imports.parser_order import ParserAccount, ParserOrder
from junhong_cmp.imports.parser_process import ParserProcess, start_parser

MANY = workbooks.xlsx({"卡": [["ICCID"], *[[iccid(n)] for n in range(20_000)]]})

Source: TypeAlias = IO[bytes] | AsyncGenerator[bytes, None]


def order_for(limits: ParserLimits | None = None, *, from_line: int = 0, text: bool = False) -> ParserOrder:
    return ParserOrder(
        format=FileFormat.TEXT if text else FileFormat.XLSX,
        encoding="utf-8" if text else "",
        sheet="",
        from_line=from_line,
        account=ParserAccount(Carrier.CMCC, "acc", ""),
        parent=os.getpid(),
        cpu=timedelta(seconds=60),
        limits=ImportLimits(),
        workbook_limits=WorkbookLimits(ratio=1000),
        parser_limits=limits or ParserLimits(),
    )


@pytest.fixture
def many() -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(MANY)
        file.flush()
        yield file


def children() -> list[psutil.Process]:
    mine = psutil.Process().children(recursive=True)
    return [one for one in mine if "junhong_cmp.imports.parser_child" in one.cmdline()]


async def rows_of(source: Source, order: ParserOrder) -> list[Judged]:
    async with start_parser(source, order) as process, aclosing(process.frames()) as frames:
        return [row async for kind, got in frames if kind is FrameKind.ROWS for row in decode_rows(got)]


async def test_rows_come_in_order_and_only_those_asked_for(many: IO[bytes]) -> None:
    rows = await rows_of(many, order_for(from_line=19_990))
    assert [row.last_line for row in rows] == list(range(19_990, 20_002))
    assert rows[-1].outcome.value == iccid(19_999)
    assert children() == []


async def test_the_child_knows_no_secret_and_lives_in_a_session_of_its_own(
    many: IO[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JUNHONG_POSTGRES_DSN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"):
        monkeypatch.setenv(name, "canary")
    async with start_parser(many, order_for()) as process, aclosing(process.frames()) as frames:
        await anext(frames)
        (child,) = children()
        assert "canary" not in child.environ().values()
        assert os.getsid(child.pid) == child.pid
        assert child.rlimit(psutil.RLIMIT_AS)[0] == ParserLimits().address_space


async def test_a_process_that_can_not_be_started_is_no_fault_of_the_file(many: IO[bytes]) -> None:
    order = replace(order_for(), sheet="x" * 200_000)  # more than the system takes for an argument
    for source in (many, text_of(b"ICCID\n")):
        with pytest.raises(ParserNotStartedError, match="文件解析进程无法启动"):
            await rows_of(source, order)
    assert children() == []


@pytest.mark.parametrize("locale", ["C", "zh_CN.GBK", "C.UTF-8"])
async def test_the_order_is_understood_in_any_locale(monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    with tempfile.TemporaryFile() as file:
        file.write(workbooks.xlsx({"说明": [["x"]], "卡表": [["ICCID"], [iccid(1)]]}))
        file.flush()
        (row,) = await rows_of(file, replace(order_for(), sheet="卡表"))
    assert row.outcome.value == iccid(1)


async def test_leaving_early_ends_the_child(many: IO[bytes]) -> None:
    async with start_parser(many, order_for()) as process, aclosing(process.frames()) as frames:
        await anext(frames)
        assert len(children()) == 1
    assert children() == []


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has written is told by /proc")
async def test_the_child_works_no_further_than_it_is_waited_for(many: IO[bytes]) -> None:
    async with start_parser(many, order_for()) as process, aclosing(process.frames()) as frames:
        await anext(frames)
        (child,) = children()
        await wait_until(
            lambda: child.status() == psutil.STATUS_SLEEPING and child.io_counters().write_chars > 4096,
            description="the child waits for its reader",
        )
        assert child.io_counters().write_chars < 40_000  # of about a megabyte


async def test_cancelling_ends_the_child(many: IO[bytes]) -> None:
    waiting = asyncio.Event()

    async def read() -> None:
        async with start_parser(many, order_for()):
            waiting.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await waiting.wait()
    assert len(children()) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == []


async def test_the_child_dies_with_its_parent(many: IO[bytes], tmp_path: Path) -> None:
    path = tmp_path / "cards.xlsx"
    path.write_bytes(MANY)
    script = f"""
import asyncio, os
from tests.imports.test_parser_process import *

async def main():
    with open({str(path)!r}, "rb") as file:
        async with start_parser(file, order_for()) as process:
            print(process._process.pid, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    child = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.communicate()
    await wait_until(lambda: not child.is_running(), description="the child is gone")


async def test_too_much_memory_ends_the_child_and_not_us() -> None:
    items = "".join(f"<si><t>{n:0100d}</t></si>" for n in range(300_000))
    parts: dict[str, str | bytes] = {"xl/sharedStrings.xml": f"<sst>{items}</sst>"}
    limits = ParserLimits(address_space=64 * 1024**2)
    with tempfile.TemporaryFile() as file, capture_logs() as logs:
        file.write(workbooks.xlsx({"卡": [["ICCID"]]}, parts=parts))
        file.flush()
        with pytest.raises(FileRefusedError, match="超出内存限制"):
            await rows_of(file, order_for(limits))
    assert [(entry["event"], entry["exit_code"]) for entry in logs] == [("文件解析进程异常退出", 3)]


async def text_of(*pieces: bytes, then: Exception | None = None) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece
    if then is not None:
        raise then


async def test_a_text_is_fed_piece_by_piece() -> None:
    pieces = [b"IC", b"CID\n", *[f"{iccid(n)}\n".encode() for n in range(5000)], iccid(5000).encode()]
    rows = await rows_of(text_of(*pieces), order_for(from_line=3, text=True))
    assert [row.outcome.value for row in rows] == [iccid(n) for n in range(1, 5001)]
    assert children() == []


@pytest.mark.parametrize("kind", [ConnectionAbortedError, ConnectionResetError, BrokenPipeError, ValueError])
async def test_what_keeps_a_text_from_coming_is_what_is_raised(kind: type[Exception]) -> None:
    text = text_of(b"ICCID\n", then=kind("storage"))
    with capture_logs(), pytest.raises(kind, match="storage"):
        await rows_of(text, order_for(text=True))
    assert children() == []


async def test_a_text_that_is_refused_is_not_read_on() -> None:
    given = 0

    async def endless() -> AsyncGenerator[bytes, None]:
        nonlocal given
        while True:
            given += 1
            yield b"no header\n" * 6000

    with pytest.raises(FileRefusedError, match="找不到 ICCID 列"):
        await rows_of(endless(), order_for(text=True))
    assert given < 1000


async def test_a_text_may_be_left_before_its_end() -> None:
    lines = [f"{iccid(n)}\n".encode() * 2000 for n in range(500)]
    text = text_of(b"ICCID\n", *lines)
    async with start_parser(text, order_for(text=True)) as parser, aclosing(parser.frames()) as frames:
        await anext(frames)
    assert children() == []


@asynccontextmanager
async def stand_in(script: str, limits: ParserLimits | None = None) -> AsyncGenerator[ParserProcess, None]:
    """A process that takes the child's place and does what ``script`` says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    child = ParserProcess(process, order_for(limits))
    try:
        yield child
    finally:
        await child.end()


WRITE = "import sys; sys.stdout.buffer.write({!r}); sys.stdout.flush()"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"import os; os.kill(os.getpid(), {signal.SIGXCPU:d})", "超时"),
        (f"import os; os.kill(os.getpid(), {signal.SIGKILL:d})", "被系统终止"),
        (f"import os; os.kill(os.getpid(), {signal.SIGSEGV:d})", "异常退出"),
        ("import os; os.abort()", "内存限制"),
        ("", "异常退出"),
        ("raise SystemExit(9)", "异常退出"),
        (WRITE.format(b"\0\0"), "异常退出"),
        (WRITE.format(b"\0\0\0\x05nope!"), "异常退出"),
        (WRITE.format(b"\xff\xff\xff\xff"), "异常退出"),
        (WRITE.format(b'\0\0\0\x0e["gone", null]'), "异常退出"),
    ],
)
async def test_however_the_child_ends_there_is_a_reason(script: str, reason: str) -> None:
    async with stand_in(script) as process:
        with pytest.raises(FileRefusedError, match=reason):
            await anext(process.frames())


async def test_a_child_that_stays_silent_is_ended() -> None:
    limits = ParserLimits(silence=timedelta(seconds=0.2))
    async with stand_in("import time; time.sleep(60)", limits) as process:
        with pytest.raises(FileRefusedError, match="超时"):
            await anext(process.frames())
    assert process._process.returncode == -signal.SIGKILL


async def test_a_child_that_is_silent_but_at_work_is_let_be() -> None:
    limits = ParserLimits(silence=timedelta(seconds=1))
    busy = "import time; end = time.monotonic() + 4\nwhile time.monotonic() < end: pass\n"
    body = b'["end", null]'
    async with stand_in(busy + WRITE.format(len(body).to_bytes(4, "big") + body), limits) as process:
        assert [frame async for frame in process.frames()] == []


async def test_a_fault_of_ours_is_logged_with_its_place() -> None:
    body = b'["failed", "KeyError xlsx.py:7"]'
    async with stand_in(WRITE.format(len(body).to_bytes(4, "big") + body)) as process:
        with capture_logs() as logs, pytest.raises(FileRefusedError, match="异常退出"):
            await anext(process.frames())
    assert logs == [{"event": "文件解析出错", "log_level": "error", "place": "KeyError xlsx.py:7"}]


@pytest.mark.parametrize("seed", range(12))
async def test_a_damaged_xls_costs_no_more_than_its_process(seed: int) -> None:
    data = bytearray(workbooks.xls({"卡": [["ICCID"], [iccid(1)], [{"formula": "1+1"}]]}))
    chance = random.Random(seed)
    for _ in range(10):
        data[chance.randrange(len(data))] = chance.randrange(256)
    with tempfile.TemporaryFile() as file, capture_logs():
        file.write(data)
        file.flush()
        try:
            rows = await rows_of(file, replace(order_for(), format=FileFormat.XLS))
        except FileRefusedError:
            rows = []
    assert len(rows) <= 65_536
    assert children() == []
