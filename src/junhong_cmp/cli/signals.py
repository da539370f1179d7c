"""What a signal does, from the program's first line to its last.

Imports only the standard library's lightest modules: it is loaded before anything that takes time.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNAL_EXIT_BASE = 128

_STANDARD_ERROR = 2
_EARLY_END = "尚未启动即收到退出信号，直接退出"


class _Phase(Enum):
    NOTHING_OPEN = auto()  # imports and configuration: leaving at once leaves nothing behind
    RUNNING = auto()  # somebody is listening who closes what is open
    ENDING = auto()  # the exit code is decided, only the interpreter is left to finish


class StopSignals:
    """Stop signals turn SIGTERM and SIGINT into one clean stop, and a second one into an immediate end.

    The first signal ends the process with 0: at once while nothing is open, which one line of the log then
    tells, else by way of the listener.
    The second ends it at once with 128+n, whatever it is doing.
    """

    def __init__(self) -> None:
        self._phase = _Phase.NOTHING_OPEN
        self._received: signal.Signals | None = None
        self._on_stop: Callable[[signal.Signals], None] | None = None

    def install(self) -> None:
        """Take over SIGTERM and SIGINT; call from the main thread, before the slow imports."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._receive)

    def restore(self) -> None:
        """Give SIGTERM and SIGINT back their usual meaning, for commands that stop in their own way."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def listen(self, on_stop: Callable[[signal.Signals], None]) -> None:
        """From now on tell ``on_stop`` of the first signal; it runs inside the handler and must be quick."""
        self._on_stop = on_stop
        self._phase = _Phase.RUNNING

    def finish(self) -> None:
        """From now on a first signal changes nothing: the process is ending with its own exit code."""
        self._phase = _Phase.ENDING

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._received is not None:
            os._exit(SIGNAL_EXIT_BASE + number)
        self._received = signal.Signals(number)
        if self._phase is _Phase.NOTHING_OPEN:
            _tell_of_early_end(self._received)
            os._exit(0)
        if self._phase is _Phase.RUNNING and self._on_stop is not None:
            self._on_stop(self._received)


def _tell_of_early_end(number: signal.Signals) -> None:
    """Write the line the log would have: it may not be set up yet, and an import may be under way."""
    wished = os.environ.get("JUNHONG_LOG_FORMAT", "")
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f'{{"time":"{at}","level":"info","event":"{_EARLY_END}","signal":"{number.name}"}}\n'
    if wished == "console" or (wished != "json" and os.isatty(_STANDARD_ERROR)):
        line = f"{at} {_EARLY_END} signal={number.name}\n"
    with suppress(OSError):  # nobody listens any more
        os.write(_STANDARD_ERROR, line.encode())
