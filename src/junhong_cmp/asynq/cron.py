"""Cron specs as Asynq takes them (robfig/cron v3, standard parser).

Five fields, ``@hourly`` and its like, ``@every 1h30m``, each with an optional ``CRON_TZ=Zone`` or
``TZ=Zone`` before it. Fields are cronsim's: in a zone with summer time a run in the skipped hour happens
once after it, one in the repeated hour once. ``@every`` counts from the epoch and not, as in Go, from the
start of the process: all schedulers must mean the same instants.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.go_text import parse_duration

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = 5
_SECOND: Final = timedelta(seconds=1)


class InvalidCronError(AsynqError):
    """A cron spec cannot be understood."""

    def __init__(self, spec: str, reason: str) -> None:
        super().__init__(f"定时表达式无效：{spec}（{reason}）")


class CronSchedule:
    """A cron schedule knows the instants, in whole seconds, a spec stands for."""

    def __init__(self, spec: str, *, tz: tzinfo = UTC) -> None:
        self.spec = spec
        zone, body = _split_zone(spec)
        self._tz = zone if zone is not None else tz
        self._every = _parse_every(spec, body)
        self._fields = "" if self._every else _parse_fields(spec, body)
        if not self._every:
            self._check()

    def next_after(self, instant: datetime) -> datetime:
        """Return the first run after ``instant``, in UTC."""
        if self._every:
            return _epoch((int(instant.timestamp()) // self._every + 1) * self._every)
        return next(CronSim(self._fields, instant.astimezone(self._tz))).astimezone(UTC)

    def due(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the last ``limit`` runs after ``after`` up to and with ``until``, oldest first, in UTC."""
        runs = list(islice(takewhile(lambda run: run > after, self._backwards(until)), limit))
        return runs[::-1]

    def _backwards(self, until: datetime) -> Iterator[datetime]:
        if self._every:
            latest = int(until.timestamp()) // self._every * self._every
            while True:
                yield _epoch(latest)
                latest -= self._every
        # cronsim walks back from just before its start: a second later makes the start itself count.
        start = datetime.fromtimestamp(int(until.timestamp()) + 1, self._tz)
        for run in CronSim(self._fields, start, reverse=True):
            yield run.astimezone(UTC)

    def _check(self) -> None:
        try:
            next(CronSim(self._fields, datetime(2024, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise InvalidCronError(self.spec, str(error)) from None
        except StopIteration:
            raise InvalidCronError(self.spec, "没有任何日期符合") from None


def _split_zone(spec: str) -> tuple[tzinfo | None, str]:
    if not spec.startswith(("TZ=", "CRON_TZ=")):
        return None, spec.strip()
    prefix, _, body = spec.partition(" ")
    try:
        return ZoneInfo(prefix.partition("=")[2]), body.strip()
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise InvalidCronError(spec, "未知时区") from None


def _parse_every(spec: str, body: str) -> int:
    """Return the period of ``@every`` in whole seconds, at least 1, as robfig's Every; 0 for other specs."""
    if not body.startswith("@every "):
        return 0
    try:
        period = parse_duration(body.removeprefix("@every ").strip())
    except ValueError:
        raise InvalidCronError(spec, "间隔应为 Go 时长，如 1h30m") from None
    return max(1, period // _SECOND)


def _parse_fields(spec: str, body: str) -> str:
    if body.startswith("@"):
        if body not in _DESCRIPTORS:
            raise InvalidCronError(spec, "未知的 @ 写法")
        return _DESCRIPTORS[body]
    fields = body.upper().split()
    if len(fields) != _FIELDS:
        raise InvalidCronError(spec, "应为 5 段：分 时 日 月 周")
    return " ".join("*" + field[1:] if field.startswith("?") else field for field in fields)


def _epoch(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
