"""Fixtures that put the Go programs beside the test's Redis."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.interop.programs import Asynqmon, AsynqTool, GoAsynq, Programs, asynqmon_running, build
from tests.interop.python_side import PythonSide


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # the folder of all workers of one run
    return build(shared / "go-programs")


@pytest.fixture
def socket(redis_url: str) -> str:
    return urlsplit(redis_url).path


@pytest.fixture
def go(programs: Programs, socket: str) -> GoAsynq:
    return GoAsynq(programs, socket)


@pytest.fixture
def tool(programs: Programs, socket: str) -> AsynqTool:
    return AsynqTool(programs, socket)


@pytest.fixture
async def asynqmon(programs: Programs, socket: str) -> AsyncIterator[Asynqmon]:
    async with asynqmon_running(programs, socket) as web:
        yield web


@pytest.fixture
async def ours(redis_url: str) -> AsyncIterator[PythonSide]:
    side = PythonSide(redis_url)
    yield side
    await side.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.interop)
