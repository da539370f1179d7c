"""What ``junhong up`` prints."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from junhong_cmp.cli.up_figures import Figures
from junhong_cmp.cli.up_screen import LiveScreen, PlainScreen, Progress, Screen, open_screen
from junhong_cmp.cli.up_summary import ExitReason, summarise
from junhong_cmp.imports.model import ImportStatus, ImportTask

TASK = ImportTask(
    id=1,
    account_id=1,
    file_name="cards.csv",
    file_key="k",
    file_sha256="s",
    file_bytes=1,
    status=ImportStatus.RUNNING,
    total=1_200,
    imported=1_180,
    skipped=5,
    rejected=15,
    warned=0,
    next_line=1_201,
    result_key=None,
    error=None,
    created_at=datetime(2026, 3, 1, tzinfo=UTC),
    started_at=None,
    finished_at=None,
)
FIGURES = Figures(
    cards=3_000,
    waiting=6_000,
    due=4,
    polled=1_234,
    failed=2,
    throttled=3,
    polled_per_s=149.96,
    lag_p95=timedelta(milliseconds=87),
)
IMPORTING = Progress(elapsed=timedelta(seconds=3), rows=3_054, imported=TASK)
POLLING = replace(IMPORTING, elapsed=timedelta(seconds=65), figures=FIGURES)


@pytest.mark.parametrize("kind", [PlainScreen, LiveScreen])
def test_everything_is_shown(kind: type[PlainScreen] | type[LiveScreen]) -> None:
    output = io.StringIO()
    screen: Screen = kind(Console(file=output, force_terminal=kind is LiveScreen, width=120))
    screen.report([("数据目录", "/data")])
    screen.say("你好")
    screen.show(IMPORTING)
    screen.show(POLLING)
    screen.close()
    screen.close()
    text = output.getvalue()
    for part in ("启动报告", "/data", "你好", "1200/3054", "1180", "01:05", "3000", "1234", "150.0", "87 ms"):
        assert part in text, part


def test_a_plain_screen_prints_a_line_for_each_moment() -> None:
    output = io.StringIO()
    PlainScreen(Console(file=output)).show(POLLING)
    assert output.getvalue() == (
        "[01:05] 卡 3000  待轮询 6000  到期 4  已轮询 1234  每秒 150.0  滞后 p95 87 ms  失败 2  限流 3\n"
    )


def test_without_a_poll_there_is_no_lag() -> None:
    output = io.StringIO()
    PlainScreen(Console(file=output)).show(replace(POLLING, figures=replace(FIGURES, lag_p95=None)))
    assert "滞后 p95 –" in output.getvalue()


def test_without_a_terminal_the_screen_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    screen = open_screen(as_json=True)
    assert isinstance(screen, PlainScreen)
    screen.say("状态")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "状态\n")


def test_the_summary_is_one_json_line_or_a_few_of_text() -> None:
    summary = summarise(
        TASK,
        FIGURES,
        reason=ExitReason.FOR_ELAPSED,
        polling_for=timedelta(seconds=20.04),
        data_dir=Path("/data"),
    )
    assert json.loads(summary.as_json()) == {
        "imported": 1_180,
        "skipped": 5,
        "rejected": 15,
        "cards": 3_000,
        "polled": 1_234,
        "failed": 2,
        "throttled": 3,
        "lag_p95_ms": 87,
        "duration_s": 20.0,
        "exit_reason": "for_elapsed",
        "data_dir": "/data",
    }
    text = summary.as_text()
    assert "已运行到指定时长" in text
    assert "成功 1180，跳过 5，拒绝 15" in text


def test_a_run_that_ended_early_has_a_summary_too() -> None:
    summary = summarise(
        None, None, reason=ExitReason.SIGNAL, polling_for=timedelta(0), data_dir=Path("/data")
    )
    assert (summary.imported, summary.polled, summary.lag_p95_ms) == (0, 0, None)
    assert "滞后 p95 –" in summary.as_text()
