"""The pipeline as a whole: structlog's records, the standard library's, JSON and console."""

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import structlog

from junhong_cmp import logs

CANARY = "s3cr3t-canary"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def set_up(stream: io.StringIO, **options: Any) -> None:
    logs.configure(
        stream=stream,
        context={"role": "leader", "instance": "主机一"},
        secrets=[CANARY],
        **{"fmt": logs.LogFormat.JSON, **options},
    )


def refuse(reason: str) -> None:
    raise ConnectionError(reason)


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_every_record_carries_role_and_instance() -> None:
    stream = io.StringIO()
    set_up(stream)
    structlog.stdlib.get_logger("own").warning("租约续约失败", remaining_s=6.0)
    logging.getLogger("foreign").warning("plain %s", "text", extra={"card": 5})
    own, foreign = records(stream)
    assert own["event"] == "租约续约失败"
    assert own["remaining_s"] == 6.0
    assert foreign["event"] == "plain text"
    assert foreign["card"] == 5
    for record, name in ((own, "own"), (foreign, "foreign")):
        assert (record["role"], record["instance"]) == ("leader", "主机一")
        assert (record["level"], record["logger"]) == ("warning", name)
        assert record["time"].endswith("Z")


def test_no_secret_passes_by_any_road() -> None:
    stream = io.StringIO()
    set_up(stream)
    log = structlog.stdlib.get_logger("own")
    log.info(
        "连接",
        url=f"redis://:{CANARY}@h",
        dsn=f"postgresql://u:{CANARY}@h",
        token=CANARY,
        nested={"a": [CANARY]},
    )
    try:
        refuse(f"auth failed for {CANARY}")
    except ConnectionError:
        log.exception("连接失败")
        logging.getLogger("foreign").exception("failed with %s", CANARY)
    assert CANARY not in stream.getvalue()
    assert len(records(stream)) == 3
    assert "ConnectionError" in records(stream)[1]["exception"]


def test_console_on_a_terminal_json_elsewhere() -> None:
    for stream, is_json in ((Terminal(), False), (io.StringIO(), True)):
        set_up(stream, fmt=logs.LogFormat.AUTO)
        structlog.stdlib.get_logger("own").info("一句话", n=1)
        assert stream.getvalue().startswith("{") is is_json
        assert "一句话" in stream.getvalue()


def test_console_masks_tracebacks_too() -> None:
    stream = io.StringIO()
    set_up(stream, fmt=logs.LogFormat.CONSOLE)
    try:
        refuse(CANARY)
    except ConnectionError:
        structlog.stdlib.get_logger("own").exception("连接失败")
    assert "ConnectionError: ***" in stream.getvalue()
    assert CANARY not in stream.getvalue()


def test_level_is_kept_for_both_kinds() -> None:
    stream = io.StringIO()
    set_up(stream, level=logs.LogLevel.ERROR)
    structlog.stdlib.get_logger("own").warning("不写")
    logging.getLogger("foreign").warning("no")
    structlog.stdlib.get_logger("own").error("写")
    assert [record["event"] for record in records(stream)] == ["写"]


def test_hostile_text_stays_one_line() -> None:
    stream = io.StringIO()
    set_up(stream)
    structlog.stdlib.get_logger("own").info("导入\n{}", iccid='8986\n{"event":"forged"}\u2028')
    assert len(stream.getvalue().splitlines()) == 1


def test_values_of_any_type_can_be_logged() -> None:
    stream = io.StringIO()
    set_up(stream)
    structlog.stdlib.get_logger("own").info(
        "值", a={1, 2}, b=object, c=2**80, d=float("nan"), e={3: {4: b"\xff"}}
    )
    (record,) = records(stream)
    assert record["e"] == {"3": {"4": "\\xff"}}


def test_python_warnings_are_records() -> None:
    stream = io.StringIO()
    set_up(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", UserWarning, stacklevel=1)
    assert records(stream)[0]["logger"] == "py.warnings"


def test_standard_error_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure(fmt=logs.LogFormat.JSON)
    structlog.stdlib.get_logger("own").info("默认")
    assert records(stream)[0]["event"] == "默认"


def test_a_pool_that_cannot_reconnect_repeats_no_traceback() -> None:
    stream = io.StringIO()
    set_up(stream)
    pool = logging.getLogger("asyncpg.pool")
    pool.warning("Failed to restore the pool connection floor; retrying", exc_info=OSError("refused"))
    pool.error("something else")
    assert [record["event"] for record in records(stream)] == ["something else"]
