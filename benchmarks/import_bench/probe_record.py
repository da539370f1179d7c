"""Tasks that do nothing but note how long they waited, and the file they note it in."""

import struct
import time
from pathlib import Path
from typing import Final

PROBE: Final = "bench:probe"
WORKER_QUEUE: Final = "default"
"""One of the queues of the worker that imports."""
BYSTANDER_QUEUE: Final = "bystander"
"""The queue of a process that imports nothing."""
_SENT: Final = struct.Struct("<d")
_NOTE: Final = struct.Struct("<dd")


def make_probe() -> bytes:
    """Return the payload of a probe that is sent now."""
    return _SENT.pack(time.time())


class ProbeRecord:
    """A probe record is a file of (when sent, how long it waited), in seconds, one pair for each probe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._out = path.open("ab", buffering=0)

    def note(self, payload: bytes) -> None:
        """Append a probe that is taken up now."""
        (sent,) = _SENT.unpack(payload)
        self._out.write(_NOTE.pack(sent, time.time() - sent))


def read_waits(path: Path, since: float, until: float) -> list[float]:
    """Return how long the probes sent in that span waited, the shortest first."""
    found = _NOTE.iter_unpack(path.read_bytes())
    return sorted(waited for sent, waited in found if since <= sent < until)


def p99(values: list[float]) -> float:
    """Return the 99th percentile of sorted values."""
    return values[min(len(values) - 1, len(values) * 99 // 100)]
