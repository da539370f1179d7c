"""The lease as Redis keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from junhong_cmp.leadership.candidate import LATEST_MS, Candidate

UNNAMED: Final = "未命名"
"""What a log calls a holder that was given no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """A lease record says who holds the lease, in which term, and until when by the server's clock.

    Instants are unix milliseconds of the server; ``now`` is when the record was read. What cannot be
    understood reads as 0 or "".
    """

    now: int
    holder: str
    name: str
    host: str
    pid: int
    epoch: int
    seq: int
    ttl: timedelta
    since: int
    expires: int

    @property
    def alive(self) -> bool:
        """Whether somebody holds the lease and it has not lapsed."""
        return bool(self.holder) and self.expires > self.now

    @property
    def expires_in(self) -> float:
        """Seconds until the lease lapses."""
        return (self.expires - self.now) / 1000

    @property
    def led_since(self) -> datetime:
        """When the holder was elected."""
        return datetime.fromtimestamp(min(self.since, LATEST_MS) / 1000, UTC)

    @property
    def state(self) -> str:
        """What changes with each renewal: the scripts compare it as it stands."""
        return f"{self.holder}:{self.epoch}:{self.seq}"

    @property
    def described(self) -> dict[str, object]:
        """The holder in fields of a log record."""
        return {
            "holder": self.holder,
            "holder_name": self.name or UNNAMED,
            "holder_host": self.host,
            "holder_pid": self.pid,
            "holder_since": self.led_since.isoformat(timespec="seconds"),
        }

    @classmethod
    def parse(cls, now: bytes, pairs: Sequence[bytes]) -> "LeaseRecord":
        """Read the hash, given as field, value, field, value and so on."""
        fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return cls(
            now=int(now),
            holder=_text(fields.get(b"holder")),
            name=_text(fields.get(b"name")),
            host=_text(fields.get(b"host")),
            pid=_whole(fields.get(b"pid")),
            epoch=_whole(fields.get(b"epoch")),
            seq=_whole(fields.get(b"seq")),
            ttl=timedelta(milliseconds=_whole(fields.get(b"ttl"))),
            since=_whole(fields.get(b"since")),
            expires=_whole(fields.get(b"expires")),
        )


@dataclass(frozen=True, slots=True)
class Elected:
    """The lease is the caller's, in a new term; ``gap`` is how long nobody held it, if that can be told."""

    epoch: int
    gap: timedelta | None


@dataclass(frozen=True, slots=True)
class LeadershipView:
    """Who leads and who waits, at one moment."""

    lease: LeaseRecord
    standbys: tuple[Candidate, ...]


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _whole(raw: bytes | None) -> int:
    """Read a whole number a double holds exactly, as the scripts do; 0 for anything else."""
    if raw is None or not raw.isdigit() or int(raw) >= 2**53 - 1:
        return 0
    return int(raw)
