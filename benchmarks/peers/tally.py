"""Counting what a peer's handlers did, inside its process."""

WARM_SHARE = 0.15


class Tally:
    """A tally prints ``warm <count>`` once a part of the tasks is handled, and ``done <count>`` last."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._warm = int(tasks * WARM_SHARE)
        self._count = 0

    def count(self) -> None:
        """Count one handled task."""
        self._count += 1
        if self._count == self._warm:
            print("warm", self._count, flush=True)
        elif self._count == self._tasks:
            print("done", self._count, flush=True)
