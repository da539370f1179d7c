"""What the simulated carrier can tell about itself while it runs."""

from collections import Counter


class SimulatorStats:
    """Simulator stats count calls and watch for two calls of one type about one card at a time."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._ops: Counter[str] = Counter()
        self._cards_in_flight: Counter[tuple[str, str]] = Counter()
        self._in_flight = 0
        self._max_in_flight = 0
        self._overlaps = 0

    def begin(self, op: str, iccids: tuple[str, ...]) -> None:
        """Note that a request about these cards is being answered."""
        self._ops[op] += 1
        self._in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self._in_flight)
        for iccid in iccids:
            self._cards_in_flight[op, iccid] += 1
            self._overlaps += self._cards_in_flight[op, iccid] > 1

    def end(self, op: str, iccids: tuple[str, ...], outcome: str) -> None:
        """Note how it ended."""
        self._outcomes[outcome] += 1
        self._in_flight -= 1
        for iccid in iccids:
            self._cards_in_flight[op, iccid] -= 1
            if not self._cards_in_flight[op, iccid]:
                del self._cards_in_flight[op, iccid]

    def snapshot(self) -> dict[str, object]:
        """Return the figures as ``GET /_sim/stats`` shows them."""
        return {
            "requests": self._ops.total(),
            "ops": dict(self._ops),
            "outcomes": dict(self._outcomes),
            "in_flight": self._in_flight,
            "max_in_flight": self._max_in_flight,
            "overlaps": self._overlaps,
        }
