"""Go's way to write durations, strings and instants, which the Go tools parse."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from junhong_cmp.asynq.task import EnqueueOptions

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MILLI: Final = 1_000
_SECOND: Final = 1_000_000
"""In microseconds."""
_LONGEST_NS: Final = 2**63
"""Beyond this no Go duration goes: about 292 years."""
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_duration(text: str) -> timedelta:
    """Parse what ``time.ParseDuration`` does, ``1h30m`` or ``1.5s``; finer than a microsecond is cut off.

    Raises:
        ValueError: the text is no duration.

    """
    sign = -1 if text.startswith("-") else 1
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return timedelta(0)
    total_ns, end = 0.0, 0
    for part in _PART.finditer(body):
        if part.start() != end:
            break
        total_ns += float(part[1]) * _UNITS_NS[part[2]]
        end = part.end()
    if not body or end != len(body) or total_ns >= _LONGEST_NS:
        raise ValueError(text)
    return sign * timedelta(microseconds=total_ns // 1_000)


def format_duration(duration: timedelta) -> str:
    """Write a duration as ``time.Duration.String`` does: ``1h0m0s``, ``1.5s``, ``100ms``, ``0s``."""
    micros = duration // timedelta(microseconds=1)
    if micros < 0:
        return f"-{format_duration(-duration)}"
    if micros == 0:
        return "0s"
    if micros < _MILLI:
        return f"{micros}µs"
    if micros < _SECOND:
        return f"{_decimal(micros, _MILLI)}ms"
    minutes, rest = divmod(micros, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def format_options(options: EnqueueOptions) -> list[str]:
    """Write options as Go's ``Option.String`` does (client.go), leaving out those at their default."""
    default = EnqueueOptions()
    lines = [f"Queue({json.dumps(options.queue, ensure_ascii=False)})"]
    if options.max_retry != default.max_retry:
        lines.append(f"MaxRetry({options.max_retry})")
    durations = (
        ("Timeout", options.timeout),
        ("Unique", options.unique_for),
        ("ProcessIn", options.process_in),
        ("Retention", options.retention),
    )
    lines += [f"{name}({format_duration(value)})" for name, value in durations if value is not None]
    instants = (("Deadline", options.deadline), ("ProcessAt", options.process_at))
    lines += [f"{name}({_unix_date(value)})" for name, value in instants if value is not None]
    if options.group is not None:
        lines.append(f"Group({json.dumps(options.group, ensure_ascii=False)})")
    return lines


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{fraction:0{len(str(unit)) - 1}d}".rstrip("0")


def _unix_date(instant: datetime) -> str:
    """Write ``time.UnixDate``, whatever language the process speaks: strftime would follow its locale."""
    at = instant.astimezone(UTC)
    clock = at.strftime("%H:%M:%S")
    return f"{_DAYS[at.weekday()]} {_MONTHS[at.month - 1]} {at.day:>2} {clock} UTC {at.year}"
