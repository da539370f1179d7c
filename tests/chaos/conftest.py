"""Fleets to play rough on, and the figures of the run."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.chaos.figures import PROPERTY, FigureCollector, encode
from tests.chaos.fleet import CARDS, INTERVAL_S, Fleet
from tests.scenarios.platform import Platform

from junhong_cmp.cards.model import Card

_FIGURES = FigureCollector()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "tests/chaos" in report.nodeid:
        _FIGURES.take(report)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if _FIGURES.ran and not hasattr(config, "workerinput") and "not chaos" not in config.option.markexpr:
        print(_FIGURES.line(), flush=True)  # noqa: T201 - the run ends with this line


@pytest.fixture
async def platform(
    redis: Redis, redis_url: str, pool: asyncpg.Pool, postgres_dsn: str, data_folder: Path
) -> AsyncIterator[Platform]:
    async with Platform(redis, redis_url, pool, postgres_dsn, data_folder) as platform:
        yield platform


@pytest.fixture
async def fleet(
    redis: Redis,
    redis_url: str,
    pool: asyncpg.Pool,
    postgres_dsn: str,
    data_folder: Path,
    figures: dict[str, float],
) -> AsyncIterator[Fleet]:
    """A fleet without workers yet."""
    latency = timedelta(milliseconds=20)
    fleet = Fleet(redis, redis_url, pool, postgres_dsn, data_folder, carrier_latency=latency, figures=figures)
    async with fleet:
        await fleet.poll_usage_every(INTERVAL_S)
        yield fleet


@pytest.fixture
async def cards(fleet: Fleet) -> list[Card]:
    return await fleet.issue_cards(CARDS)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[dict[str, float]]:
    """What this test measures; it stands in the last line of the run."""
    figures: dict[str, float] = {}
    yield figures
    request.node.user_properties.append((PROPERTY, encode(figures)))
