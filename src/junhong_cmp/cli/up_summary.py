"""What a run of ``junhong up`` ends with: figures for people, or one JSON object for programs."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import orjson

from junhong_cmp.cli.up_figures import AccountFigures, Figures
from junhong_cmp.cli.up_imports import ImportCounts
from junhong_cmp.cli.up_pauses import reason_text


class ExitReason(StrEnum):
    """Why a run ended."""

    FOR_ELAPSED = "for_elapsed"
    SIGNAL = "signal"
    PROCESS_DIED = "process_died"


_REASONS = {
    ExitReason.FOR_ELAPSED: "已运行到指定时长",
    ExitReason.SIGNAL: "收到停止信号",
    ExitReason.PROCESS_DIED: "有子进程意外结束",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSummary:
    """What became of one account; ``pause_reason`` and ``paused_until`` are those of its last pause.

    ``paused`` tells whether it rested when the run ended; without a pause in this run both others are None.
    """

    account: str
    driver: str
    cards: int
    polled: int
    failed: int
    throttled: int
    polled_per_s: float
    lag_p95_ms: int | None
    paused: bool
    pause_reason: str | None
    paused_until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpSummary:
    """The outcome of a run; the field names are those of ``--json``.

    Row counts are those of the card files' imports, whichever run did them; polls are this run's.
    ``duration_s`` counts from the first poll.
    """

    imported: int
    skipped: int
    rejected: int
    cards: int
    polled: int
    failed: int
    throttled: int
    lag_p95_ms: int | None
    duration_s: float
    exit_reason: ExitReason
    data_dir: str
    accounts: tuple[AccountSummary, ...]

    def as_json(self) -> str:
        """One line of JSON."""
        return orjson.dumps(asdict(self)).decode()

    def as_text(self) -> str:
        """A few lines of Chinese."""
        lag = "–" if self.lag_p95_ms is None else f"{self.lag_p95_ms} ms"
        return (
            f"运行结束：{_REASONS[self.exit_reason]}\n"
            f"  导入：成功 {self.imported}，跳过 {self.skipped}，拒绝 {self.rejected}\n"
            f"  轮询：{self.polled} 次，失败 {self.failed}，限流 {self.throttled}，滞后 p95 {lag}，"
            f"用时 {self.duration_s:.0f} 秒\n"
            f"{self._accounts_text()}"
            f"  数据：{self.cards} 张卡保存在 {self.data_dir}，再次运行将从此处继续"
        )

    def _accounts_text(self) -> str:
        """A line for each account, if there are several."""
        if len(self.accounts) == 1:
            return ""
        return "".join(
            f"  账号 {each.account}：{each.polled} 次，失败 {each.failed}，限流 {each.throttled}，"
            f"{_rest(each)}\n"
            for each in self.accounts
        )


def summarise(
    imports: ImportCounts | None,
    figures: Figures | None,
    *,
    reason: ExitReason,
    polling_for: timedelta,
    data_dir: Path,
) -> UpSummary:
    """Put a summary together; a run that ended early has no figures, or no import either."""
    rows = ImportCounts() if imports is None else imports
    seconds = polling_for.total_seconds()
    return UpSummary(
        imported=rows.imported,
        skipped=rows.skipped,
        rejected=rows.rejected,
        cards=0 if figures is None else figures.cards,
        polled=0 if figures is None else figures.polled,
        failed=0 if figures is None else figures.failed,
        throttled=0 if figures is None else figures.throttled,
        lag_p95_ms=None if figures is None else _milliseconds(figures.lag_p95),
        duration_s=round(seconds, 1),
        exit_reason=reason,
        data_dir=str(data_dir),
        accounts=() if figures is None else tuple(_account(each, seconds) for each in figures.accounts),
    )


def _account(figures: AccountFigures, seconds: float) -> AccountSummary:
    pause = figures.pause
    return AccountSummary(
        account=figures.account,
        driver=figures.driver,
        cards=figures.cards,
        polled=figures.polled,
        failed=figures.failed,
        throttled=figures.throttled,
        polled_per_s=round(figures.polled / seconds, 1) if seconds else 0.0,
        lag_p95_ms=_milliseconds(figures.lag_p95),
        paused=figures.paused,
        pause_reason=None if pause is None else pause.reason,
        paused_until=None if pause is None or pause.until is None else pause.until.isoformat(),
    )


def _rest(account: AccountSummary) -> str:
    if account.pause_reason is None:
        return "未暂停"
    reason = reason_text(account.pause_reason)
    return f"暂停中（{reason}）" if account.paused else f"未暂停（曾{reason}）"


def _milliseconds(lag: timedelta | None) -> int | None:
    return None if lag is None else round(lag.total_seconds() * 1000)
