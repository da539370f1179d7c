"""Fleets to play rough on, and the figures of the run."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.chaos.figures import PROPERTY, FigureCollector, encode
from tests.chaos.fleet import CARDS, INTERVAL_S, Fleet
from tests.chaos.schedule import rank
from tests.scenarios.platform import Platform

from junhong_cmp.cards.model import Card

_FIGURES = FigureCollector()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "not chaos" not in config.option.markexpr:
        items.sort(key=lambda item: rank(item.nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "tests/chaos" in report.nodeid:
        _FIGURES.take(report)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if _FIGURES.ran and not hasattr(config, "workerinput") and "not chaos" not in config.option.markexpr:
        print(_FIGURES.line(), flush=True)  # noqa: T201 - the run ends with this line


Services = tuple[Redis, str, asyncpg.Pool, str, Path]


@pytest.fixture
def services(
    redis: Redis, redis_url: str, pool: asyncpg.Pool, postgres_dsn: str, data_folder: Path
) -> Services:
    """What a platform is made of."""
    return redis, redis_url, pool, postgres_dsn, data_folder


@pytest.fixture
async def platform(services: Services) -> AsyncIterator[Platform]:
    async with Platform(*services) as platform:
        yield platform


@pytest.fixture
def carrier_latency(request: pytest.FixtureRequest) -> timedelta:
    """How long the carrier takes for an answer; a test may ask for another time."""
    latency: timedelta = getattr(request, "param", timedelta(milliseconds=20))
    return latency


@pytest.fixture
async def fleet(
    services: Services, carrier_latency: timedelta, figures: dict[str, float]
) -> AsyncIterator[Fleet]:
    """A fleet without workers yet."""
    fleet = Fleet(*services, carrier_latency=carrier_latency, figures=figures)
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
