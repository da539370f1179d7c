"""Stretches of simulated time to live through, and the figures of the longest one."""

from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.simulation.carrier import widen_doors
from tests.simulation.day import SimulatedDay
from tests.simulation.plan import Plan
from tests.simulation.scaled_clock import TimeScale

PROPERTY = "simulation"

_lines: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown" and "tests/simulation" in report.nodeid:
        _lines.extend(str(value) for name, value in report.user_properties if name == PROPERTY)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if _lines and not hasattr(config, "workerinput"):
        print(_lines[-1], flush=True)  # noqa: T201 - the run ends with this line


@pytest.fixture
def prepare(
    redis: Redis,
    redis_url: str,
    pool: asyncpg.Pool,
    postgres_dsn: str,
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Plan], SimulatedDay]:
    """A stretch of simulated time by plan."""

    def prepared(plan: Plan) -> SimulatedDay:
        scale = TimeScale(data_folder / "started", plan.begin.timestamp(), plan.factor)
        widen_doors(monkeypatch, scale)
        return SimulatedDay(plan, scale, redis, redis_url, pool, postgres_dsn, data_folder)

    return prepared
