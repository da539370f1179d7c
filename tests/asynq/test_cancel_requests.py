"""Operators cancel running tasks, and say what then becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.asynq.serving import Bench, Gate, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.cancel_requests import CancelPolicy, CancelRequest, decode_request, encode_requests
from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def cancel(bench: Bench, task_id: str, policy: CancelPolicy | None = None) -> None:
    async def heard() -> bool:
        return await bench.broker.publish_cancel(task_id, policy) > 0

    await wait_until(heard, description="the server listens")


@given(st.text(min_size=1), st.sampled_from([None, *CancelPolicy]))
def test_a_request_survives_the_channel_and_ends_with_what_go_understands(
    task_id: str, policy: CancelPolicy | None
) -> None:
    request = CancelRequest(task_id.encode(errors="replace").decode(), policy)
    messages = encode_requests(request)
    assert decode_request(messages[0].encode()) == request
    assert messages[-1] == request.task_id


def test_a_word_that_is_no_policy_is_a_part_of_the_id() -> None:
    assert decode_request(b"a\x1fexplode") == CancelRequest("a\x1fexplode")


@pytest.mark.parametrize(
    ("own", "asked", "state"),
    [
        (CancelPolicy.RETRY, None, "retry"),
        (CancelPolicy.ARCHIVE, None, "archived"),
        (CancelPolicy.DROP, None, None),
        (CancelPolicy.RETRY, CancelPolicy.ARCHIVE, "archived"),
        (CancelPolicy.RETRY, CancelPolicy.DROP, None),
        (CancelPolicy.DROP, CancelPolicy.RETRY, "retry"),
    ],
)
async def test_the_request_decides_and_else_the_server(
    bench: Bench, own: CancelPolicy, asked: CancelPolicy | None, state: str | None
) -> None:
    gate = Gate()
    await bench.serve(gate, cancel_policy=own, retry_delay=lambda *_: timedelta(hours=1))
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")
    await cancel(bench, task_id, asked)
    await bench.wait_size("active", 0)
    found = await bench.field(task_id, "state")
    assert found == (state.encode() if state else None)
    assert (await bench.counter("processed"), await bench.counter("failed")) == (1, 1 if state else 0)


async def test_what_a_cancelled_handler_decides_is_honoured(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if task.type == "done":
                return
            raise SkipRetry("半途而废") from None

    server = await bench.serve(handler, cancel_policy=CancelPolicy.DROP)
    done, skipped = await bench.enqueue("done", "skip")
    await wait_until(lambda: server.in_flight == 2, description="both run")
    for task_id in (done, skipped):
        await cancel(bench, task_id)
    await bench.wait_size("active", 0)
    assert await bench.ids("archived") == [skipped]
    assert await bench.field(done, "msg") is None


async def test_a_cancelled_task_is_not_taken_for_another(bench: Bench) -> None:
    gate = Gate()
    await bench.serve(gate)
    first, second = await bench.enqueue("a", "b")
    await wait_until(lambda: len(gate.entered) == 2, description="both run")
    await cancel(bench, first, CancelPolicy.DROP)
    await wait_until(lambda: gate.cancelled, description="one is cancelled")
    await bench.wait_size("active", 1)
    assert gate.cancelled == [first]
    assert await bench.ids("active") == [second]
