import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, ParserLimits, WorkbookLimits
from junhong_cmp.imports.parser_child import keep_pace
from junhong_cmp.imports.parser_order import ParserAccount, ParserOrder


def socket_pair() -> tuple[int, int]:
    return cast(tuple[int, int], tuple(end.detach() for end in socket.socketpair()))


SCRIPT = """
import sys
from junhong_cmp.imports.parser_child import confine
from junhong_cmp.imports.parser_order import ParserOrder
confine(ParserOrder.decode(sys.argv[1]))
print("confined", flush=True)
"""


def run(
    script: str, *, parent: int | None = None, folder: Path, own_session: bool = False
) -> subprocess.CompletedProcess[str]:
    order = ParserOrder(
        format=FileFormat.XLSX,
        encoding="",
        sheet="",
        from_line=0,
        account=ParserAccount(Carrier.CMCC, "acc", ""),
        parent=os.getpid() if parent is None else parent,
        limits=ImportLimits(),
        cpu=timedelta(seconds=1),
        workbook_limits=WorkbookLimits(),
        parser_limits=ParserLimits(address_space=256 * 1024**2),
    )
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + script, order.encode()],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        start_new_session=own_session,
    )


def test_without_its_parent_it_does_nothing(tmp_path: Path) -> None:
    done = run("", parent=1, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("while True: pass", -signal.SIGXCPU, ""),
        ("held = bytearray(400 * 1024**2)", 1, "MemoryError"),
        ("with open('out', 'w') as out: out.write('x')", 1, "File too large"),
        ("import os; os.abort()", -signal.SIGABRT, ""),
    ],
)
def test_it_can_use_no_more_than_it_was_given(script: str, code: int, said: str, tmp_path: Path) -> None:
    done = run(script, folder=tmp_path)
    assert done.stdout == "confined\n"
    assert done.returncode == code
    assert said in done.stderr
    assert [one.stat().st_size for one in tmp_path.iterdir() if one.name != "out"] == []


AUTOGROUP = Path("/proc/self/autogroup")
AUTOGROUPS_ARE_USED = Path("/proc/sys/kernel/sched_autogroup_enabled")
TELL_NICENESS = f"import os; print(os.nice(0), open({str(AUTOGROUP)!r}).read().strip())"


def groups_by_session() -> bool:
    return AUTOGROUPS_ARE_USED.exists() and AUTOGROUPS_ARE_USED.read_text(encoding="ascii").strip() == "1"


@pytest.mark.skipif(not groups_by_session(), reason="this kernel does not group processes by session")
def test_it_gives_way_to_other_sessions_too_but_leaves_those_of_others_alone(tmp_path: Path) -> None:
    here = AUTOGROUP.read_text(encoding="ascii")  # empty in a session that began outside any group
    with_us = run(TELL_NICENESS, folder=tmp_path)
    alone = run(TELL_NICENESS, folder=tmp_path, own_session=True)
    niceness = min(os.nice(0) + 5, 19)
    assert with_us.stdout == f"confined\n{niceness} {here.strip()}\n"
    assert alone.stdout.startswith(f"confined\n{niceness} /autogroup-")
    assert alone.stdout.endswith(" nice 5\n")
    assert AUTOGROUP.read_text(encoding="ascii") == here


@pytest.mark.parametrize("make", [os.pipe, socket_pair])
def test_little_lies_on_the_way_to_the_reader(make: Callable[[], tuple[int, int]]) -> None:
    """A pipe is what asyncio gives a child, a socket what uvloop does."""
    reader, writer = make()
    keep_pace(writer)
    os.set_blocking(writer, False)
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += os.write(writer, bytes(1000))
    assert 1000 <= sent < 16_000
    os.close(reader)
    os.close(writer)
