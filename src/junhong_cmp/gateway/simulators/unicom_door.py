"""The serial numbers of calls to China Unicom's platform: fresh, well formed, and never the same twice."""

import re
from datetime import datetime, timedelta
from typing import Final

from junhong_cmp.gateway.drivers.unicom_signing import CARRIER_TIME
from junhong_cmp.gateway.verifier import ReplayGuard

WINDOW: Final = timedelta(minutes=5)

_TIMESTAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (\d{3})", re.ASCII)
_TRANS_ID: Final = re.compile(r"\d{23}", re.ASCII)
_TIME_DIGITS: Final = 17


class SerialGuard:
    """A serial guard admits each serial number once, and only near its own time."""

    def __init__(self) -> None:
        self._seen = ReplayGuard(int(WINDOW.total_seconds()))

    def problem_of(self, timestamp: str, trans_id: str, now: datetime) -> str | None:
        """Return what is wrong with the numbers of a call, in the platform's language, or None."""
        moment = _moment_of(timestamp)
        if moment is None or not _TRANS_ID.fullmatch(trans_id):
            return "时间戳或流水号格式错误"
        if abs(moment - now) > WINDOW:
            return "时间戳超出允许范围"
        if trans_id[:_TIME_DIGITS] != re.sub(r"\D", "", timestamp):
            return "流水号与时间戳不符，签名无效"
        unix_s = int(moment.timestamp())
        if not self._seen.admit("", trans_id, timestamp_s=unix_s, now_s=now.timestamp()):
            return "流水号已使用，签名无效"
        return None


def _moment_of(timestamp: str) -> datetime | None:
    found = _TIMESTAMP.fullmatch(timestamp)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1]).replace(tzinfo=CARRIER_TIME)
    except ValueError:
        return None
    return moment + timedelta(milliseconds=int(found[2]))
