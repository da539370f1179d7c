"""Who contends for the lease: one process, under an identity of its own."""

import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

LATEST_MS: Final = 253_402_300_799_000
"""The last second of the year 9999: what claims to be later is garbage that no date can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A candidate is a process; ``name``, ``host``, ``pid`` and ``since`` are for people, ``holder`` decides.

    ``since`` is when it began to contend, in unix milliseconds.
    """

    holder: str
    name: str
    host: str
    pid: int
    since: int

    @classmethod
    def of_this_process(cls, name: str) -> "Candidate":
        """Give this process an identity no other has, whatever it is called."""
        return cls(
            holder=uuid.uuid4().hex,
            name=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            since=time.time_ns() // 1_000_000,
        )

    @property
    def waits_since(self) -> datetime:
        """When it began to contend."""
        return datetime.fromtimestamp(max(0, min(self.since, LATEST_MS)) / 1000, UTC)

    def encode(self) -> str:
        """Return the entry among the standbys."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def decode(cls, text: bytes) -> "Candidate | None":
        """Read an entry among the standbys; None for what is none."""
        try:
            fields = orjson.loads(text)
            return cls(
                holder=str(fields["holder"]),
                name=str(fields["name"]),
                host=str(fields["host"]),
                pid=int(fields["pid"]),
                since=int(fields["since"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):  # no JSON is a ValueError
            return None
