"""What a standby knows of the leader by watching it."""

import time

from junhong_cmp.leadership.lease import LeaseRecord
from junhong_cmp.leadership.times import LeaseTimes


class Rival:
    """A rival is whoever holds the lease we want: seen to renew it, or not seen to for too long.

    `expires` is an instant of the server's clock, which somebody may set back by an hour. A lease that has
    not changed for its whole duration on *our* monotonic clock is dead whatever that clock says. Its time
    runs from the reply that first showed it, so it is never too short.
    """

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._state = ""
        self._seen_at = 0.0
        self.record: LeaseRecord | None = None
        self.renews = False
        """Whether it was seen to renew: a process that lives, not a lease left behind."""

    @property
    def expired_state(self) -> str:
        """The state that stood unchanged for a whole lease, or "" while it may be alive."""
        return self._state if self.record is not None and self._left() <= 0 else ""

    def observe(self, record: LeaseRecord) -> bool:
        """Take what an attempt found; tell whether it is another holder or term than before."""
        before = self.record
        is_new = before is None or (before.holder, before.epoch) != (record.holder, record.epoch)
        if is_new:
            self.renews = False
        elif record.state != self._state:
            self.renews = True
        if record.state != self._state:
            self._state, self._seen_at = record.state, time.monotonic()
        self.record = record
        return is_new

    def forget(self) -> None:
        """Know of nobody."""
        self.record, self.renews, self._state = None, False, ""

    def lapses_in(self) -> float:
        """Return the seconds until the lease lapses by either clock, at least 0."""
        if self.record is None:
            return 0.0
        return max(0.0, min(self.record.expires_in, self._left()))

    def _left(self) -> float:
        if self.record is None:
            return 0.0
        ttl = max(self.record.ttl, self._times.ttl).total_seconds()
        return self._seen_at + ttl - time.monotonic()
