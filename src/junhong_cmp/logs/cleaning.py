"""What a log line may hold: no control characters, no endless values.

Card numbers, file names and carrier answers come from outside. A line feed in one would forge a second
record, an escape sequence would drive the reader's terminal, and a bidi override would show another text
than the one logged.
"""

import re
from typing import Any, Final

from structlog.typing import EventDict, WrappedLogger

MAX_VALUE_CHARS: Final = 256
MAX_EVENT_CHARS: Final = 1_000
MAX_TRACEBACK_CHARS: Final = 16_000
MAX_ITEMS: Final = 100
MAX_INTEGER_BITS: Final = 63  # what every JSON reader of records can hold

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff{_BIDI}\ud800-\udfff]")
_UNSAFE_IN_TRACEBACK = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff{_BIDI}\ud800-\udfff]")
_LIMITS: Final = {"event": MAX_EVENT_CHARS, "exception": MAX_TRACEBACK_CHARS}


def clean_record(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters and shorten long values: a structlog processor."""
    for key, value in event.items():
        unsafe = _UNSAFE_IN_TRACEBACK if key == "exception" else _UNSAFE
        event[key] = _clean(value, unsafe, _LIMITS.get(key, MAX_VALUE_CHARS))
    return event


def _clean(value: Any, unsafe: re.Pattern[str], limit: int) -> Any:
    if isinstance(value, str):
        return unsafe.sub(_escape, _shorten(value, limit))
    if isinstance(value, dict):
        items = list(value.items())[:MAX_ITEMS]
        return {unsafe.sub(_escape, str(key)): _clean(item, unsafe, limit) for key, item in items}
    if isinstance(value, list):
        kept = [_clean(item, unsafe, limit) for item in value[:MAX_ITEMS]]
        return kept if len(value) <= MAX_ITEMS else [*kept, f"…（共 {len(value)} 项）"]
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        return str(value)[:limit]
    return value


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}…（共 {len(text)} 字符）"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte, two digits
