"""Named points at which a process fails itself, so that a fault happens at the same place each time."""

import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path

BLOCKED_S = 10.0
"""How long the failpoint action ``block`` holds the event loop."""
HOARD_BYTES = 128 << 20
"""How much memory is left to a process whose memory runs out."""


@dataclass
class Failpoint:
    """A failpoint acts once, the ``nth`` time its place is passed.

    Actions: kill, stop and term by signal; ``block`` the event loop; ``starve``: memory runs out, which the
    code that asked for it is told; ``exhaust``: memory runs out and the process is killed for it.
    """

    place: str = ""
    action: str = "kill"
    nth: int = 1

    @classmethod
    def parse(cls, text: str) -> "Failpoint":
        """Read ``place[:action[:nth]]``."""
        place, _, rest = text.partition(":")
        action, _, nth = rest.partition(":")
        return cls(place, action or "kill", int(nth or 1))

    def passes(self, place: str) -> bool:
        """Whether it must act now, and never again."""
        if place != self.place:
            return False
        self.nth -= 1
        return self.nth == 0

    def act(self) -> None:
        """Fail the process in the way asked for."""
        if self.action == "block":
            time.sleep(BLOCKED_S)
        elif self.action in {"starve", "exhaust"}:
            hoard_memory(killed=self.action == "exhaust")
        else:
            os.kill(os.getpid(), getattr(signal, f"SIG{self.action.upper()}"))


def hoard_memory(*, killed: bool) -> None:
    """Take memory up to a limit nearby; then raise MemoryError, or die as the kernel would have it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + HOARD_BYTES, limits[1]))
    hoard = []
    try:
        while True:
            hoard.append(bytearray(1 << 20))
    except MemoryError:
        if not killed:
            raise
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        hoard.clear()
        resource.setrlimit(resource.RLIMIT_AS, limits)
