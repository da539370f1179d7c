"""From runs to the figures of the one line the benchmark ends with."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from asynq_bench.pickup import quantile
from asynq_bench.throughput import Throughput

_P50, _P99 = 0.5, 0.99


@dataclass(slots=True)
class Figures:
    """Figures gather what was measured under a name, and compare medians."""

    runs: dict[str, list[Throughput]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    pickups_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def rate(self, name: str) -> float:
        """Return the median tasks a second."""
        return statistics.median(run.tasks_per_s for run in self.runs[name])

    def redis_cpu(self, name: str) -> float:
        """Return the median of Redis' CPU time a task, microseconds."""
        return statistics.median(run.redis_cpu_us for run in self.runs[name])

    def worker_cpu(self, name: str) -> float:
        """Return the median of the workers' CPU time a task, microseconds."""
        return statistics.median(run.worker_cpu_us for run in self.runs[name])

    def per_second(self, name: str, tasks: int) -> float:
        """Return the median tasks a second of self-timed runs of ``tasks``."""
        return tasks / statistics.median(self.seconds[name])

    def over_bare_ms(self, name: str, share: float) -> float:
        """Return how much later than the bare BLPOP a quantile of the pick-ups is."""
        return quantile(self.pickups_ms[name], share) - quantile(self.pickups_ms["bare"], share)

    def summary(self) -> dict[str, float]:
        """Return the figures of the last line; each ratio is ours divided by Go's."""
        bulk = statistics.median(self.seconds["go batch"]) / statistics.median(self.seconds["ours bulk"])
        single = statistics.median(self.seconds["go enqueue"]) / statistics.median(
            self.seconds["ours enqueue"]
        )
        figures = {
            "noop_ratio_c10": self.rate("ours c10") / self.rate("go c10"),
            "noop_ratio_c200": self.rate("ours c200") / self.rate("go c200"),
            "two_process_ratio": self.rate("ours 2x c200") / self.rate("ours c200"),
            "redis_cpu_ratio": self.redis_cpu("ours c200") / self.redis_cpu("go c200"),
            "enqueue_ratio_1": single,
            "enqueue_bulk_ratio": bulk,
            "pickup_p50_over_blpop_ms": self.over_bare_ms("ours", _P50),
            "pickup_p99_over_blpop_ms": self.over_bare_ms("ours", _P99),
        }
        return {name: round(value, 2) for name, value in figures.items()}

    def table(self, enqueued: int, bulk: int) -> list[str]:
        """Return everything that was measured, as lines for people: medians, and the range where it tells."""
        lines = [f"{'no-op tasks':16}{'tasks/s':>10}{'min':>9}{'max':>9}{'redis µs':>10}{'worker µs':>11}"]
        for name, runs in self.runs.items():
            rates = sorted(run.tasks_per_s for run in runs)
            lines.append(
                f"{name:16}{self.rate(name):10,.0f}{rates[0]:9,.0f}{rates[-1]:9,.0f}"
                f"{self.redis_cpu(name):10.1f}{self.worker_cpu(name):11.1f}"
            )
        lines.append(f"{'enqueue':16}{'tasks/s':>10}")
        for name in self.seconds:
            count = enqueued if name.endswith("enqueue") else bulk
            lines.append(f"{name:16}{self.per_second(name, count):10,.0f}")
        lines.append(f"{'pick-up, ms':16}{'p50':>10}{'p99':>9}{'samples':>10}")
        for name, values in self.pickups_ms.items():
            lines.append(
                f"{name:16}{quantile(values, _P50):10.2f}{quantile(values, _P99):9.2f}{len(values):10}"
            )
        return lines
