"""What ``junhong up`` prints."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from junhong_cmp.cli.up_figures import AccountFigures, Figures
from junhong_cmp.cli.up_imports import ImportCounts
from junhong_cmp.cli.up_pauses import Pause
from junhong_cmp.cli.up_screen import LiveScreen, PlainScreen, Progress, Screen, open_screen
from junhong_cmp.cli.up_summary import ExitReason, summarise

COUNTS = ImportCounts(rows=3_054, total=1_200, imported=1_180, skipped=5, rejected=15)
UNICOM = AccountFigures(
    account="demo-unicom",
    driver="unicom",
    cards=1_000,
    polled=34,
    failed=2,
    throttled=3,
    polled_per_s=0.2,
    lag_p95=timedelta(milliseconds=950),
    recent_lag_p95=timedelta(milliseconds=87),
    pause=Pause("throttled", datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC)),
    paused=True,
)
CTCC = replace(
    UNICOM, account="demo-ctcc", driver="ctcc", polled=1_200, failed=0, throttled=0, pause=None, paused=False
)
FIGURES = Figures(
    cards=3_000,
    waiting=6_000,
    due=4,
    polled=1_234,
    failed=2,
    throttled=3,
    polled_per_s=149.96,
    lag_p95=timedelta(milliseconds=950),
    recent_lag_p95=timedelta(milliseconds=87),
    accounts=(UNICOM,),
)
BOTH = replace(FIGURES, accounts=(UNICOM, CTCC))
IMPORTING = Progress(elapsed=timedelta(seconds=3), imports=COUNTS)
POLLING = replace(IMPORTING, elapsed=timedelta(seconds=65), figures=FIGURES)


def printed(progress: Progress) -> str:
    output = io.StringIO()
    PlainScreen(Console(file=output)).show(progress)
    return output.getvalue()


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
    assert printed(POLLING) == (
        "[01:05] 卡 3000  待轮询 6000  到期 4  已轮询 1234  每秒 150.0  近一分钟滞后 p95 87 ms  "
        "失败 2  限流 3\n"
    )


@pytest.mark.parametrize("kind", [PlainScreen, LiveScreen])
def test_why_nothing_is_polled_is_said_while_it_lasts(kind: type[PlainScreen] | type[LiveScreen]) -> None:
    output = io.StringIO()
    screen: Screen = kind(Console(file=output, force_terminal=kind is LiveScreen, width=120))
    screen.show(POLLING)
    assert "暂缓认领" not in output.getvalue()
    screen.show(replace(POLLING, figures=replace(FIGURES, claims_held=timedelta(seconds=74.2))))
    screen.close()
    assert "主节点暂缓认领" in output.getvalue()
    assert "约 75 秒后恢复轮询" in output.getvalue()


def test_without_a_poll_there_is_no_lag() -> None:
    assert "滞后 p95 –" in printed(replace(POLLING, figures=replace(FIGURES, recent_lag_p95=None)))


@pytest.mark.parametrize("kind", [PlainScreen, LiveScreen])
def test_several_accounts_are_shown_one_by_one(kind: type[PlainScreen] | type[LiveScreen]) -> None:
    output = io.StringIO()
    screen: Screen = kind(Console(file=output, force_terminal=kind is LiveScreen, width=120))
    screen.show(replace(POLLING, figures=BOTH))
    screen.close()
    text = output.getvalue()
    for part in ("demo-unicom", "demo-ctcc", "unicom", "ctcc", "被限流，至 ", "否", "1200", "34"):
        assert part in text, part


def test_a_plain_screen_has_a_line_for_each_of_several_accounts() -> None:
    assert printed(replace(POLLING, figures=BOTH)).splitlines()[2].split() == [
        *("账号", "demo-ctcc", "驱动", "ctcc", "卡", "1000", "已轮询", "1200", "每秒", "0.2"),
        *("滞后", "p95", "87", "ms", "失败", "0", "限流", "0", "暂停", "否"),
    ]


@pytest.mark.parametrize(
    ("account", "shown"),
    [
        (replace(UNICOM, paused=False), "暂停 否（曾被限流）"),
        (replace(UNICOM, pause=Pause("manual", None)), "暂停 人工暂停，直到人工恢复"),
        (replace(UNICOM, pause=Pause("manual: 对账", None)), "暂停 人工暂停：对账，直到人工恢复"),
        (replace(UNICOM, pause=Pause("new_word", None)), "暂停 new_word，直到人工恢复"),
    ],
)
def test_a_pause_says_why_and_until_when(account: AccountFigures, shown: str) -> None:
    assert shown in printed(replace(POLLING, figures=replace(FIGURES, accounts=(account, CTCC))))


def test_without_a_terminal_the_screen_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    screen = open_screen(as_json=True)
    assert isinstance(screen, PlainScreen)
    screen.say("状态")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "状态\n")


def test_the_summary_is_one_json_line_or_a_few_of_text() -> None:
    summary = summarise(
        COUNTS,
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
        "lag_p95_ms": 950,
        "duration_s": 20.0,
        "exit_reason": "for_elapsed",
        "data_dir": "/data",
        "accounts": [
            {
                "account": "demo-unicom",
                "driver": "unicom",
                "cards": 1_000,
                "polled": 34,
                "failed": 2,
                "throttled": 3,
                "polled_per_s": 1.7,
                "lag_p95_ms": 950,
                "paused": True,
                "pause_reason": "throttled",
                "paused_until": "2026-03-01T12:00:01+00:00",
            }
        ],
    }
    text = summary.as_text()
    assert "已运行到指定时长" in text
    assert "成功 1180，跳过 5，拒绝 15" in text
    assert "账号" not in text


def test_the_summary_of_several_accounts_tells_each(tmp_path: Path) -> None:
    summary = summarise(
        COUNTS, BOTH, reason=ExitReason.SIGNAL, polling_for=timedelta(seconds=20), data_dir=tmp_path
    )
    text = summary.as_text()
    assert "账号 demo-unicom：34 次，失败 2，限流 3，暂停中（被限流）" in text
    assert "账号 demo-ctcc：1200 次，失败 0，限流 0，未暂停" in text
    assert [each.pause_reason for each in summary.accounts] == ["throttled", None]
    over = replace(BOTH, accounts=(replace(UNICOM, paused=False), CTCC))
    summary = summarise(
        COUNTS, over, reason=ExitReason.SIGNAL, polling_for=timedelta(seconds=20), data_dir=tmp_path
    )
    assert "限流 3，未暂停（曾被限流）" in summary.as_text()


def test_a_run_that_ended_early_has_a_summary_too() -> None:
    summary = summarise(
        None, None, reason=ExitReason.SIGNAL, polling_for=timedelta(0), data_dir=Path("/data")
    )
    assert (summary.imported, summary.polled, summary.lag_p95_ms) == (0, 0, None)
    assert summary.accounts == ()
    assert "滞后 p95 –" in summary.as_text()
