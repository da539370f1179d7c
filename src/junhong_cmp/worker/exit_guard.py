"""The last resort of a stop: the process ends in time even if something in it hangs."""

import logging
import os
import threading
from datetime import timedelta

import structlog

from junhong_cmp.errors import ExitCode

log = structlog.stdlib.get_logger(__name__)


class ExitGuard:
    """An exit guard ends the process when a stop takes longer than it may.

    It waits in a thread of its own, so neither a blocked event loop nor a name look-up that no timeout
    reaches can keep the process alive. Tasks it cuts off are taken over when their leases end.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def arm(self, limit: timedelta, exit_code: ExitCode) -> None:
        """End the process with ``exit_code`` unless it has ended within ``limit``."""
        self.disarm()
        self._timer = threading.Timer(limit.total_seconds(), self._end, (limit, exit_code))
        self._timer.name = "exit-guard"
        self._timer.daemon = True
        self._timer.start()

    def disarm(self) -> None:
        """Let the process take its time again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @staticmethod
    def _end(limit: timedelta, exit_code: ExitCode) -> None:
        try:
            log.error("关闭未在时限内完成，强制退出", limit_s=limit.total_seconds(), exit_code=int(exit_code))
            logging.shutdown()
        finally:
            os._exit(exit_code)
