"""What a run of ``junhong up`` ends with: figures for people, or one JSON object for programs."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import orjson

from junhong_cmp.cli.up_figures import Figures
from junhong_cmp.imports.model import ImportTask


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
class UpSummary:
    """The outcome of a run; the field names are those of ``--json``.

    Row counts are those of the card file's import, whichever run did it; polls are this run's.
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
            f"  数据：{self.cards} 张卡保存在 {self.data_dir}，再次运行将从此处继续"
        )


def summarise(
    task: ImportTask | None,
    figures: Figures | None,
    *,
    reason: ExitReason,
    polling_for: timedelta,
    data_dir: Path,
) -> UpSummary:
    """Put a summary together; a run that ended early has no figures, or no import either."""
    lag = None if figures is None or figures.lag_p95 is None else figures.lag_p95
    return UpSummary(
        imported=0 if task is None else task.imported,
        skipped=0 if task is None else task.skipped,
        rejected=0 if task is None else task.rejected,
        cards=0 if figures is None else figures.cards,
        polled=0 if figures is None else figures.polled,
        failed=0 if figures is None else figures.failed,
        throttled=0 if figures is None else figures.throttled,
        lag_p95_ms=None if lag is None else round(lag.total_seconds() * 1000),
        duration_s=round(polling_for.total_seconds(), 1),
        exit_reason=reason,
        data_dir=str(data_dir),
    )
