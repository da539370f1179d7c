"""Modules start in order, stop in reverse, and only what started is stopped."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.lifecycle import ModuleGroup


class Probe:
    """A module that fails the test when it is stopped without running, or started twice."""

    def __init__(
        self, name: str, events: list[str], *, start_error: bool = False, stop_error: bool = False
    ) -> None:
        self._name = name
        self._events = events
        self._start_error = start_error
        self._stop_error = stop_error
        self.running = False
        self.hold: asyncio.Event | None = None

    @property
    def name(self) -> str:
        return self._name

    async def start(self) -> None:
        assert not self.running, f"{self._name} started twice"
        if self.hold is not None:
            await self.hold.wait()
        await asyncio.sleep(0)
        if self._start_error:
            raise ValueError(self._name)
        self.running = True
        self._events.append(f"+{self._name}")

    async def stop(self) -> None:
        assert self.running, f"{self._name} was stopped without having been started"
        self.running = False
        self._events.append(f"-{self._name}")
        await asyncio.sleep(0)
        if self._stop_error:
            raise ValueError(self._name)


def idle(modules: Sequence[Probe]) -> bool:
    return not any(module.running for module in modules)


async def test_start_order_and_its_reverse() -> None:
    events: list[str] = []
    seen: list[str] = []
    modules = [Probe(name, events) for name in "abc"]
    group = ModuleGroup(modules)
    await group.start(on_started=lambda module: seen.append(module.name))
    assert ",".join(group.started) == "a,b,c"
    assert seen == ["a", "b", "c"]
    await group.stop()
    assert events == ["+a", "+b", "+c", "-c", "-b", "-a"]
    assert not group.started


async def test_a_failing_start_rolls_back_and_touches_nothing_unstarted() -> None:
    events: list[str] = []
    modules = [Probe("a", events), Probe("b", events, start_error=True), Probe("c", events)]
    group = ModuleGroup(modules)
    with capture_logs() as logs, pytest.raises(ValueError, match="b"):
        await group.start()
    assert events == ["+a", "-a"]
    assert logs[-2]["event"] == "模块启动未完成，回滚已启动的模块"
    await group.stop()
    assert events == ["+a", "-a"]


async def test_a_cancelled_start_rolls_back() -> None:
    events: list[str] = []
    modules = [Probe("a", events), Probe("b", events)]
    modules[1].hold = asyncio.Event()
    start = asyncio.create_task(ModuleGroup(modules).start())
    await wait_until(lambda: "+a" in events, description="the first module runs")
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert events == ["+a", "-a"]


async def test_one_failing_stop_keeps_no_other_running() -> None:
    events: list[str] = []
    modules = [Probe("a", events), Probe("b", events, stop_error=True), Probe("c", events, stop_error=True)]
    group = ModuleGroup(modules)
    await group.start()
    with capture_logs() as logs, pytest.raises(ExceptionGroup) as caught:
        await group.stop()
    assert len(caught.value.exceptions) == 2
    assert idle(modules)
    assert [record["module"] for record in logs if record["event"] == "模块停止失败"] == ["c", "b"]


async def test_stopping_twice_stops_once() -> None:
    events: list[str] = []
    group = ModuleGroup([Probe("a", events)])
    await group.start()
    await group.stop()
    await group.stop()
    assert events == ["+a", "-a"]


@pytest.mark.parametrize("seed", range(30))
async def test_start_and_stop_stress(seed: int) -> None:
    """Whatever fails or is cancelled wherever: the started are stopped once, the others never."""
    dice = random.Random(seed)
    events: list[str] = []
    modules = [
        Probe(f"m{number}", events, start_error=dice.random() < 0.1, stop_error=dice.random() < 0.2)
        for number in range(8)
    ]
    group = ModuleGroup(modules)
    start = asyncio.create_task(group.start())
    for _ in range(dice.randrange(20)):
        await asyncio.sleep(0)
    if dice.random() < 0.5:
        start.cancel()
    await asyncio.wait({start})
    if not start.cancelled():
        start.exception()
    try:
        await group.stop()
    except* ValueError:
        pass
    assert idle(modules)
    started = [event[1:] for event in events if event[0] == "+"]
    stopped = [event[1:] for event in events if event[0] == "-"]
    assert stopped == started[::-1]
