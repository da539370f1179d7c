from datetime import UTC, datetime

import pytest

from junhong_cmp.asynq.mux import (
    FunctionHandler,
    HandlerPatternError,
    Middleware,
    ServeMux,
    UnknownTaskTypeError,
)
from junhong_cmp.asynq.processing_task import Handler, ProcessingTask


def task(kind: str) -> ProcessingTask:
    return ProcessingTask(id="1", type=kind, deadline=datetime.now(UTC))


def answering(heard: list[str], name: str) -> FunctionHandler:
    async def answer(task: ProcessingTask) -> None:
        heard.append(f"{name}:{task.type}")

    return FunctionHandler(answer)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("mail:send", "exact"),
        ("mail:send:now", "longer"),
        ("mail:drop", "shorter"),
        ("mailbox", "shortest"),
    ],
)
async def test_the_exact_pattern_wins_then_the_longest_prefix(kind: str, expected: str) -> None:
    heard: list[str] = []
    mux = ServeMux()
    for pattern, name in (("mail", "shortest"), ("mail:", "shorter"), ("mail:send:", "longer")):
        mux.handle(pattern, answering(heard, name))
    mux.handle("mail:send", answering(heard, "exact"))
    await mux.process_task(task(kind))
    assert heard == [f"{expected}:{kind}"]


async def test_an_unknown_type_is_said_by_name() -> None:
    with pytest.raises(UnknownTaskTypeError, match="no:such") as caught:
        await ServeMux().process_task(task("no:such"))
    assert caught.value.task_type == "no:such"


@pytest.mark.parametrize("pattern", ["", "  ", "\t"])
def test_a_blank_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(HandlerPatternError, match="不能为空"):
        ServeMux().handle(pattern, answering([], "x"))


def test_a_second_handler_for_a_pattern_is_refused() -> None:
    mux = ServeMux()
    mux.handle("a", answering([], "x"))
    with pytest.raises(HandlerPatternError, match="重复注册"):
        mux.handle("a", answering([], "y"))
    assert mux.patterns == ("a",)


def wrapping(heard: list[str], name: str) -> Middleware:
    def wrap(inner: Handler) -> Handler:
        async def around(task: ProcessingTask) -> None:
            heard.append(f"{name}(")
            try:
                await inner.process_task(task)
            finally:
                heard.append(f"){name}")

        return FunctionHandler(around)

    return wrap


async def test_middleware_wraps_in_the_order_of_use_unknown_types_too() -> None:
    heard: list[str] = []
    mux = ServeMux()
    mux.use(wrapping(heard, "a"), wrapping(heard, "b"))
    mux.use(wrapping(heard, "c"))
    mux.handle("x", answering(heard, "handler"))
    await mux.process_task(task("x"))
    assert heard == ["a(", "b(", "c(", "handler:x", ")c", ")b", ")a"]
    heard.clear()
    with pytest.raises(UnknownTaskTypeError):
        await mux.process_task(task("y"))
    assert heard == ["a(", "b(", "c(", ")c", ")b", ")a"]


async def test_a_mux_is_a_handler_and_may_be_nested() -> None:
    heard: list[str] = []
    inner, outer = ServeMux(), ServeMux()
    inner.handle("mail:send", answering(heard, "inner"))
    outer.handle("mail:", inner)
    await outer.process_task(task("mail:send"))
    assert heard == ["inner:mail:send"]


async def test_a_plain_function_may_be_registered() -> None:
    heard: list[str] = []

    async def handle(task: ProcessingTask) -> None:
        heard.append(task.type)

    mux = ServeMux()
    mux.handle("x", handle)
    await mux.process_task(task("x"))
    assert heard == ["x"]
    assert mux.find_handler("y") is None
