import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, TaskMessage
from junhong_cmp.asynq.errors import PutBack, RevokeTask, SkipRetry
from junhong_cmp.asynq.keys import ALL_SERVERS, queue_keys
from junhong_cmp.asynq.mux import ServeMux
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import ServerStateError
from junhong_cmp.asynq.task import EnqueueOptions, Task


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def message_of(bench: Bench, task_id: str) -> TaskMessage:
    raw = await bench.field(task_id, "msg")
    assert raw is not None
    return TaskMessage.FromString(raw)


def raising(*errors: BaseException) -> Recorder:
    left = list(errors)

    def fail(task: ProcessingTask) -> None:
        if left:
            raise left.pop(0)

    return Recorder(fail)


async def test_a_task_reaches_its_handler_whole_and_is_gone_after_it(bench: Bench) -> None:
    recorder = Recorder()
    await bench.serve(recorder)
    info = await bench.client.enqueue(
        Task("mail:send", b"\x00\xff", {"trace": "1"}),
        EnqueueOptions(max_retry=3, timeout=timedelta(minutes=5)),
    )
    await wait_until(lambda: recorder.seen, description="the task is handled")
    task = recorder.seen[0]
    assert (task.id, task.type, task.payload, task.queue) == (info.id, "mail:send", b"\x00\xff", "default")
    assert (dict(task.headers), task.retried, task.max_retry) == ({"trace": "1"}, 0, 3)
    assert timedelta(minutes=4) < task.deadline - datetime.now(UTC) <= timedelta(minutes=5)
    await bench.wait_size("active", 0)
    assert await bench.field(info.id, "msg") is None
    assert await bench.counter("processed") == 1
    assert await bench.counter("failed") == 0


async def test_thousands_of_tasks_are_each_done_once(bench: Bench) -> None:
    recorder = Recorder()
    await bench.enqueue_many(3000)
    await bench.serve(recorder, concurrency=50)
    await bench.wait_size("active", 0)
    await wait_until(lambda: len(recorder.seen) >= 3000, description="all handled")
    await bench.wait_size("active", 0)
    assert len({task.id for task in recorder.seen}) == len(recorder.seen) == 3000
    assert await bench.counter("processed") == 3000


async def test_never_more_tasks_than_slots_are_taken(bench: Bench) -> None:
    gate = Gate()
    await bench.enqueue_many(20)
    server = await bench.serve(gate, concurrency=3)
    await wait_until(lambda: len(gate.entered) == 3, description="slots are full")
    await asyncio.sleep(0.1)
    assert (server.in_flight, await bench.size("active"), await bench.size("pending")) == (3, 3, 17)
    gate.opened.set()
    await wait_until(lambda: len(gate.entered) == 20, description="the others follow")


async def test_a_new_task_wakes_an_idle_server_at_once(bench: Bench) -> None:
    recorder = Recorder()
    await bench.serve(recorder, queues={"default": 1, "other": 1})
    for round_number in range(1, 4):
        before = len(recorder.seen)
        await asyncio.sleep(0.05)
        await bench.enqueue("a", queue="other")
        await wait_until(
            lambda before=before: len(recorder.seen) > before,
            timeout=0.4,  # less than a blocking wait: found by waking, not by asking again
            description=f"picked up, round {round_number}",
        )


async def test_retention_keeps_the_task_and_its_result(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await task.write_result(json.dumps({"ok": True}).encode())

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("a", retention=timedelta(minutes=1))
    await bench.wait_size("completed", 1)
    assert await bench.field(task_id, "result") == b'{"ok": true}'
    assert await bench.field(task_id, "state") == b"completed"


async def test_completed_tasks_leave_after_their_retention(bench: Bench) -> None:
    await bench.serve(Recorder())
    (task_id,) = await bench.enqueue("a", retention=timedelta(seconds=1))
    await bench.wait_size("completed", 1)
    await bench.wait_size("completed", 0)
    assert await bench.field(task_id, "msg") is None


async def test_a_failing_task_is_retried_then_archived(bench: Bench) -> None:
    told: list[str] = []
    with capture_logs() as logs:
        recorder = Recorder(lambda task: 1 / 0)
        await bench.serve(recorder, error_handler=lambda task, error: told.append(type(error).__name__))
        (task_id,) = await bench.enqueue("a", max_retry=2)
        await bench.wait_size("archived", 1)
    assert [task.retried for task in recorder.seen] == [0, 1, 2]
    message = await message_of(bench, task_id)
    assert (message.retried, message.error_msg) == (2, "division by zero")
    assert told == ["ZeroDivisionError"] * 3
    events = Counter(entry["event"] for entry in logs)
    assert (events["任务失败，将重试"], events["任务失败，已归档"]) == (2, 1)
    assert await bench.counter("failed") == 3


@pytest.mark.parametrize("error", [ValueError("fault"), SkipRetry("verdict")])
async def test_a_traceback_tells_of_faults_and_not_of_verdicts(bench: Bench, error: Exception) -> None:
    with capture_logs() as logs:
        await bench.serve(raising(error))
        await bench.enqueue("a", max_retry=0)
        await bench.wait_size("archived", 1)
    (told,) = [entry for entry in logs if entry["event"] == "任务失败，已归档"]
    assert told["error"] == str(error)
    assert told["exc_info"] is (None if isinstance(error, SkipRetry) else error)


@pytest.mark.parametrize("text", ["", "x" * 5000, "文件\udcff.csv", "\x00"])
async def test_any_error_text_can_be_stored(bench: Bench, text: str) -> None:
    await bench.serve(raising(ValueError(text)))
    (task_id,) = await bench.enqueue("a", max_retry=0)
    await bench.wait_size("archived", 1)
    assert 0 < len((await message_of(bench, task_id)).error_msg) <= 1000


async def test_the_retry_delay_is_asked_for(bench: Bench) -> None:
    asked: list[tuple[int, str, str]] = []

    def delay(retried: int, error: BaseException, task: ProcessingTask) -> timedelta:
        asked.append((retried, str(error), task.type))
        return timedelta(hours=1)

    await bench.serve(raising(ValueError("x")), retry_delay=delay)
    await bench.enqueue("a")
    await bench.wait_size("retry", 1)
    assert asked == [(0, "x", "a")]


async def test_an_error_that_is_no_failure_does_not_count(bench: Bench) -> None:
    await bench.serve(
        raising(ValueError("busy")), is_failure=lambda error: False, retry_delay=lambda *_: timedelta(hours=1)
    )
    (task_id,) = await bench.enqueue("a", max_retry=1)
    await bench.wait_size("retry", 1)
    assert (await message_of(bench, task_id)).retried == 0
    assert await bench.counter("failed") == 0


async def test_skip_retry_archives_at_once(bench: Bench) -> None:
    await bench.serve(raising(SkipRetry("文件不存在")))
    (task_id,) = await bench.enqueue("a", max_retry=9)
    await bench.wait_size("archived", 1)
    assert (await message_of(bench, task_id)).error_msg == "文件不存在"


async def test_revoke_drops_the_task_as_processed(bench: Bench) -> None:
    await bench.serve(raising(RevokeTask("过期")))
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: bench.counter("processed"), description="counted as processed")
    assert await bench.field(task_id, "msg") is None
    assert await bench.counter("failed") == 0


async def test_put_back_is_never_a_failure_nor_archived(bench: Bench) -> None:
    back = PutBack(timedelta(0), "对象存储未配置")
    recorder = raising(back, back, back)
    await bench.serve(recorder)
    await bench.enqueue("a", max_retry=0)
    await wait_until(lambda: len(recorder.seen) == 4, description="came back three times")
    assert [task.retried for task in recorder.seen] == [0, 0, 0, 0]
    await bench.wait_size("active", 0)
    assert await bench.counter("failed") == 0
    assert await bench.size("archived") == 0


async def test_an_unknown_type_is_put_back_and_told_once_per_type(bench: Bench) -> None:
    with capture_logs() as logs:
        await bench.serve(ServeMux())
        ids = await bench.enqueue("new:kind", "new:kind", "other:kind", max_retry=0)
        await bench.wait_size("retry", 3)
    told = [entry["task_type"] for entry in logs if entry["event"] == "未知任务类型，延后放回队列"]
    assert sorted(told) == ["new:kind", "other:kind"]
    assert (await message_of(bench, ids[0])).retried == 0


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
)
async def test_nothing_a_handler_raises_ends_the_server(bench: Bench, error: BaseException) -> None:
    recorder = raising(error)
    await bench.serve(recorder)
    await bench.enqueue("a")
    await wait_until(lambda: len(recorder.seen) == 2, description="the task was retried")
    await bench.wait_size("active", 0)
    assert await bench.counter("failed") == 1


async def test_a_faulty_retry_delay_falls_back_to_the_default(bench: Bench) -> None:
    with capture_logs() as logs:
        await bench.serve(raising(ValueError("first")), retry_delay=broken, error_handler=broken)
        await bench.enqueue("a")
        await bench.wait_size("retry", 1)
    events = [entry["event"] for entry in logs]
    assert {"错误回调自身出错", "重试间隔回调出错，改用默认间隔"} <= set(events)


async def test_a_faulty_is_failure_does_not_lose_the_task(bench: Bench) -> None:
    recorder = raising(ValueError("first"))
    with capture_logs() as logs:
        await bench.serve(recorder, is_failure=broken)
        await bench.enqueue("a")
        await wait_until(lambda: len(recorder.seen) == 2, description="came again after its lease")
    assert "任务结果判定出错，等待租约过期后重新投递" in [entry["event"] for entry in logs]


def broken(*_: object) -> Any:
    raise RuntimeError("callback")


async def test_an_undecodable_message_is_quarantined_and_the_others_go_on(bench: Bench) -> None:
    (bad,) = await bench.enqueue("bad")
    await bench.redis.execute_command("HSET", queue_keys("default").task(bad), "msg", b'{"json": 1}')
    recorder = Recorder()
    with capture_logs() as logs:
        await bench.serve(recorder)
        await bench.enqueue("good")
        await wait_until(lambda: recorder.seen, description="the good one is handled")
    assert [task.type for task in recorder.seen] == ["good"]
    assert await bench.ids("archived") == [bad]
    assert [entry["task_id"] for entry in logs if entry["event"] == "任务无法解码，已隔离"] == [bad]


async def test_an_id_without_a_task_does_not_stop_the_queue(bench: Bench) -> None:
    await bench.redis.execute_command("LPUSH", queue_keys("default").pending, "ghost")
    recorder = Recorder()
    await bench.enqueue("a")
    await bench.serve(recorder, concurrency=1)
    await wait_until(lambda: recorder.seen, description="the real task is handled")
    await bench.wait_size("active", 0)


async def test_a_paused_queue_rests_without_a_hot_loop_and_goes_on_when_resumed(bench: Bench) -> None:
    await bench.broker.pause("default")
    await bench.enqueue("a")
    recorder = Recorder()
    await bench.serve(recorder)
    await asyncio.sleep(0.2)
    before = await commands_processed(bench)
    await asyncio.sleep(0.5)
    assert await commands_processed(bench) - before < 200  # a hot loop makes thousands
    assert not recorder.seen
    await bench.broker.unpause("default")
    await wait_until(lambda: recorder.seen, description="resumed")


async def test_an_idle_server_asks_redis_for_little(bench: Bench) -> None:
    from junhong_cmp.asynq.server_config import Intervals  # noqa: PLC0415 - the real intervals, only here

    await bench.serve(Recorder(), intervals=Intervals(), queues={"a": 1, "b": 2, "c": 3})
    await asyncio.sleep(0.5)  # start-up duties
    before = await commands_processed(bench)
    await asyncio.sleep(2)
    assert await commands_processed(bench) - before <= 12  # 5 a second, one of them the question itself


async def commands_processed(bench: Bench) -> int:
    info = await bench.redis.execute_command("INFO", "stats")
    if isinstance(info, dict):
        return int(info["total_commands_processed"])
    lines = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    return int(lines["total_commands_processed"])


async def test_weights_share_the_slots_and_starve_nobody(bench: Bench) -> None:
    for queue in ("high", "low"):
        await bench.enqueue_many(200, kind=queue, queue=queue)
    recorder = Recorder()
    await bench.serve(recorder, queues={"high": 3, "low": 1}, concurrency=8)
    await wait_until(lambda: len(recorder.seen) == 400, description="both queues are empty")
    first = Counter(task.type for task in recorder.seen[:160])
    assert first["high"] > first["low"] > 10


async def test_strict_priority_serves_the_higher_queue_first(bench: Bench) -> None:
    for queue in ("low", "high"):
        await bench.enqueue_many(50, kind=queue, queue=queue)
    recorder = Recorder()
    await bench.serve(recorder, queues={"low": 1, "high": 2}, strict_priority=True, concurrency=5)
    await wait_until(lambda: len(recorder.seen) == 100, description="both queues are empty")
    assert [task.type for task in recorder.seen] == ["high"] * 50 + ["low"] * 50


@pytest.mark.parametrize("concurrency", [1, 5, 20])
@pytest.mark.parametrize("strict", [True, False])
async def test_a_spoiled_queue_rests_and_keeps_no_other_waiting(
    bench: Bench, concurrency: int, *, strict: bool
) -> None:
    pending = queue_keys("spoiled").pending
    await bench.redis.execute_command("SET", pending, "foreign")
    await bench.enqueue_many(200, queue="sound")
    recorder = Recorder()
    queues = {"spoiled": 6, "sound": 1}
    with capture_logs() as logs:
        await bench.serve(recorder, queues=queues, strict_priority=strict, concurrency=concurrency)
        await wait_until(lambda: len(recorder.seen) == 200, timeout=5, description="the sound queue is empty")
        await asyncio.sleep(0.5)
    told = [log["duty"] for log in logs if log["log_level"] == "warning"]
    assert told.count("取任务：spoiled") == 1
    await bench.redis.execute_command("DEL", pending)
    await bench.enqueue("late", queue="spoiled")
    await wait_until(lambda: recorder.seen[-1].type == "late", description="it is served once it is sound")


async def test_a_timeout_cancels_the_handler_and_waits_for_its_end(bench: Bench) -> None:
    ended: list[str] = []

    async def handler(task: ProcessingTask) -> None:
        if task.retried:
            return
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append(f"active={await bench.size('active')}")

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("slow", timeout=timedelta(seconds=1))

    async def failed_then_done() -> bool:
        return (await bench.counter("failed"), await bench.counter("processed")) == (1, 2)

    await wait_until(failed_then_done, description="a timeout is a failure, the retry works")
    assert ended == ["active=1"]
    assert await bench.field(task_id, "msg") is None


async def test_a_task_past_its_deadline_fails_without_its_handler(bench: Bench) -> None:
    recorder = Recorder()
    (task_id,) = await bench.enqueue("late", deadline=datetime.now(UTC) + timedelta(seconds=1), max_retry=0)
    await asyncio.sleep(1.1)
    await bench.serve(recorder)
    await bench.wait_size("archived", 1)
    assert not recorder.seen
    assert "截止时间" in (await message_of(bench, task_id)).error_msg


async def test_a_handler_that_ignores_its_cancellation_keeps_its_slot_and_is_reported(bench: Bench) -> None:
    release = asyncio.Event()

    async def stubborn(task: ProcessingTask) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with capture_logs() as logs:
        server = await bench.serve(stubborn, concurrency=1)
        await bench.enqueue("stubborn", timeout=timedelta(seconds=1))
        await wait_until(
            lambda: [entry for entry in logs if entry["event"] == "任务取消后仍未结束"],
            description="it is reported",
        )
    assert server.in_flight == 1
    release.set()
    await wait_until(lambda: bench.counter("processed"), description="its outcome is honoured in the end")
    assert await bench.counter("failed") == 0


async def test_a_handler_that_lost_its_cancellation_is_cancelled_once_more(bench: Bench) -> None:
    async def forgetful(task: ProcessingTask) -> None:
        for _ in range(0 if task.retried else 2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append(task.id)

    lost: list[str] = []
    await bench.serve(forgetful)
    await bench.enqueue("a", timeout=timedelta(seconds=1))

    async def failed_then_done() -> bool:
        return (await bench.counter("failed"), await bench.counter("processed")) == (1, 2)

    await wait_until(failed_then_done, description="it ended at the second cancellation")


async def test_an_operator_cancels_a_running_task(bench: Bench) -> None:
    gate = Gate()
    await bench.serve(gate)
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")

    async def heard() -> bool:
        return await bench.broker.publish_cancel(task_id) > 0

    await wait_until(heard, description="the server listens")
    await wait_until(lambda: gate.cancelled, description="cancelled")
    await wait_until(lambda: bench.counter("failed"), description="a cancelled task is retried")


async def test_pause_fetching_lets_the_running_end_and_takes_no_more(bench: Bench) -> None:
    gate = Gate()
    server = await bench.serve(gate, concurrency=2)
    await bench.enqueue_many(2)
    await wait_until(lambda: len(gate.entered) == 2, description="both run")
    server.pause_fetching()
    await bench.enqueue_many(1)
    gate.opened.set()
    await bench.wait_size("active", 0)
    await asyncio.sleep(0.2)
    assert await bench.size("pending") == 1


async def test_the_tools_see_the_server_while_it_runs(bench: Bench) -> None:
    gate = Gate()
    server = await bench.serve(gate, labels={"role": "consumer"})
    await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")

    async def shown() -> ServerInfo | None:
        keys = await bench.redis.execute_command("ZRANGE", ALL_SERVERS, 0, -1)
        raw = await bench.redis.execute_command("GET", keys[0]) if keys else None
        info = ServerInfo.FromString(raw) if raw else None
        return info if info is not None and info.active_worker_count else None

    await wait_until(shown, description="server info with one worker")
    info = await shown()
    assert info is not None
    assert (info.server_id, info.status, dict(info.queues)) == (server.id, "active", {"default": 1})
    assert dict(info.labels) == {"role": "consumer"}
    gate.opened.set()
    await server.stop()
    assert await bench.redis.execute_command("ZCARD", ALL_SERVERS) == 0


async def test_a_server_starts_once(bench: Bench) -> None:
    server = await bench.serve(Recorder())
    with pytest.raises(ServerStateError, match="只能启动一次"):
        await server.start()
