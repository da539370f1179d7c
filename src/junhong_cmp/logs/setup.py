"""Set the log up: one pipeline for structlog's records and for the standard library's."""

import logging
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from junhong_cmp.logs.cleaning import clean_record
from junhong_cmp.logs.masking import SecretMask


class LogFormat(StrEnum):
    """How records are written."""

    AUTO = "auto"  # console on a terminal, else JSON
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least severe records that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# Libraries whose chatter below WARNING helps nobody who runs a worker.
_QUIET: Final = ("asyncio", "aiohttp", "alembic", "redis", "sqlalchemy", "asyncpg")

# While PostgreSQL is away this one warns every few seconds, with a traceback; our own parts say it once.
_REPEATING: Final = ("asyncpg.pool",)


def configure(
    *,
    level: LogLevel = LogLevel.INFO,
    fmt: LogFormat = LogFormat.AUTO,
    context: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Write every record of this process through one pipeline to ``stream`` (standard error).

    ``context`` (role and instance) is part of every record; ``secrets`` are texts that must never show.
    May be called again: the later call replaces the earlier one.
    """
    target = sys.stderr if stream is None else stream
    shared = _shared_processors(dict(context or {}))
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            SecretMask(secrets),
            clean_record,
            _renderer(fmt, target),
        ],
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    _quieten(root.level)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _quieten(level: int) -> None:
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    for name in _REPEATING:
        logging.getLogger(name).setLevel(max(level, logging.ERROR))


def _shared_processors(context: dict[str, str]) -> list[Processor]:
    def add_context(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {**context, **event}

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        add_context,
    ]


def _renderer(fmt: LogFormat, stream: TextIO) -> Processor:
    on_terminal = stream.isatty()
    if fmt is LogFormat.CONSOLE or (fmt is LogFormat.AUTO and on_terminal):
        return structlog.dev.ConsoleRenderer(
            colors=on_terminal,
            timestamp_key="time",
            exception_formatter=structlog.dev.plain_traceback,
            pad_event_to=0,
        )
    return _render_json


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    head = {key: event.pop(key) for key in ("time", "level", "event") if key in event}
    options = orjson.OPT_NON_STR_KEYS
    return orjson.dumps({**head, **event}, default=_as_text, option=options).decode()


def _as_text(value: Any) -> str:
    return str(value)
