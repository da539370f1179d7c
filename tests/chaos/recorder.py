"""Writes down what a worker decides, from inside its process, and fails it at a named point.

A test plants it by a prelude; the product knows nothing of it. Each process appends to a file of its own,
one JSON object a line: ``mono`` (seconds of the machine's monotonic clock, the same for every process),
``wall``, ``seq``, ``pid``, ``role``, ``op``, and what the operation is about. Lines go to the kernel at once,
so that a killed process has told everything up to its end.
"""

import itertools
import os
import resource
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.scheduler_view import SchedulerView
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway import http
from junhong_cmp.leadership.elector import LeaderElector
from junhong_cmp.leadership.term import Term
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import ClaimBatch, ShardScripts
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload

BLOCKED_S = 10.0
"""How long the failpoint action ``block`` holds the event loop."""
HOARD_BYTES = 128 << 20
"""How much memory is left to a process whose memory runs out."""

_turn: ContextVar[tuple[str, int, int] | None] = ContextVar("turn", default=None)


@dataclass
class Failpoint:
    """A failpoint acts once, the ``nth`` time its place is passed.

    Actions: kill, stop and term by signal; ``block`` the event loop; ``starve``: memory runs out, which the
    code that asked for it is told; ``exhaust``: memory runs out and the process is killed for it.
    """

    place: str = ""
    action: str = "kill"
    nth: int = 1

    @classmethod
    def parse(cls, text: str) -> "Failpoint":
        """Read ``place[:action[:nth]]``."""
        place, _, rest = text.partition(":")
        action, _, nth = rest.partition(":")
        return cls(place, action or "kill", int(nth or 1))

    def passes(self, place: str) -> bool:
        """Whether it must act now, and never again."""
        if place != self.place:
            return False
        self.nth -= 1
        return self.nth == 0


@dataclass
class Recorder:
    """A recorder appends events to the history of its process."""

    folder: Path
    role: str
    failpoint: Failpoint
    _descriptor: int = -1
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _epochs: dict[tuple[str, int, int], int] = field(default_factory=dict)
    _pages: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        path = self.folder / f"history-{os.getpid()}.jsonl"
        self._descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def note(self, op: str, **fields: Any) -> None:
        self.notes(op, [fields])

    def notes(self, op: str, rows: Iterable[dict[str, Any]]) -> None:
        """Append one event a row, in one write."""
        with self._lock:
            head = {"mono": time.monotonic(), "wall": time.time(), "pid": os.getpid(), "role": self.role}
            lines = [
                orjson.dumps({**head, "seq": next(self._numbers), "op": op, **row}) + b"\n" for row in rows
            ]
            os.write(self._descriptor, b"".join(lines))

    def reach(self, place: str) -> None:
        """Pass a place at which the process may have to fail."""
        if not self.failpoint.passes(place):
            return
        self.note("failpoint", place=place, action=self.failpoint.action)
        if self.failpoint.action == "block":
            time.sleep(BLOCKED_S)
            return
        if self.failpoint.action in {"starve", "exhaust"}:
            hoard_memory(killed=self.failpoint.action == "exhaust")
        os.kill(os.getpid(), getattr(signal, f"SIG{self.failpoint.action.upper()}"))

    def remember_epoch(self, key: tuple[str, int, int], epoch: int) -> None:
        """Note under which term a claim was given, for the enqueue that follows."""
        if len(self._epochs) > 100_000:
            self._epochs.clear()
        self._epochs[key] = epoch

    def epoch_of(self, key: tuple[str, int, int]) -> int:
        return self._epochs.get(key, 0)

    def next_page(self) -> int:
        return next(self._pages)


def plant(
    folder: str,
    role: str,
    *,
    failpoint: str = "",
    tuning: dict[str, float] | None = None,
    intervals: dict[str, float] | None = None,
    wall_shift_s: float = 0.0,
) -> None:
    """Record this process from now on.

    ``tuning`` sets figures of polling and ``intervals`` those of the queue's server, durations in seconds.
    """
    recorder = Recorder(Path(folder), role, Failpoint.parse(failpoint))
    _record_claims(recorder)
    _record_enqueues(recorder)
    _record_starts(recorder)
    _record_admissions(recorder)
    _record_endings(recorder)
    _record_handlers(recorder)
    _record_acks(recorder)
    _record_terms(recorder)
    _record_cron(recorder)
    _fail_pages(recorder)
    _fail_cleanups(recorder)
    _tune(tuning or {})
    _hasten_queue(intervals or {})
    if wall_shift_s:
        _shift_wall_clock(wall_shift_s)
    recorder.note("began")


def _wrap(owner: type, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, name, wrapper(getattr(owner, name)))


def _record_claims(recorder: Recorder) -> None:
    def wrap(claim: Callable[..., Awaitable[list[Any]]]) -> Callable[..., Awaitable[list[Any]]]:
        async def recorded(self: ShardScripts, limits: Any, *, epoch: int, visibility_ms: int) -> list[Any]:
            recorder.reach("before_claim")
            began = time.monotonic()
            batches = await claim(self, limits, epoch=epoch, visibility_ms=visibility_ms)
            rows: list[dict[str, Any]] = []
            for shard, batch in zip(limits, batches, strict=True):
                place = {
                    "epoch": epoch,
                    "type": str(shard.task_type),
                    "shard": list(map(str, shard_key(shard))),
                }
                if isinstance(batch, FencedError):
                    recorder.note("fenced", fence=batch.fence, **place)
                elif isinstance(batch, ClaimBatch):
                    for given in batch.claims:
                        key = (str(shard.task_type), given.card_id, given.claim)
                        recorder.remember_epoch(key, epoch)
                        rows.append({"began": began, "card": given.card_id, "claim": given.claim, **place})
            if rows:
                recorder.notes("claim", rows)
                recorder.reach("after_claim")
            return batches

        return recorded

    _wrap(ShardScripts, "claim", wrap)


def shard_key(shard: Any) -> tuple[Any, ...]:
    return (shard.task_type.kind, shard.account_id, shard.number)


def _record_enqueues(recorder: Recorder) -> None:
    def wrap(enqueue_many: Callable[..., Awaitable[list[Any]]]) -> Callable[..., Awaitable[list[Any]]]:
        async def recorded(self: Client, items: Any) -> list[Any]:
            rows = []
            for task, options in items:
                if options.queue == POLLING_QUEUE:
                    payload = PollPayload.decode(task.payload)
                    key = (str(task.type), payload.card_id, payload.claim)
                    rows.append(
                        {"type": key[0], "card": key[1], "claim": key[2], "epoch": recorder.epoch_of(key)}
                    )
            if rows:
                recorder.notes("enqueue", rows)
            results = await enqueue_many(self, items)
            if rows:
                recorder.notes("enqueued", rows)
                recorder.reach("after_enqueue")
            return results

        return recorded

    _wrap(Client, "enqueue_many", wrap)


def _about_turn() -> dict[str, Any]:
    """Return what the poll of this task is about, by its own claim."""
    return dict(zip(("type", "card", "claim"), _turn.get() or ("", 0, 0), strict=True))


def _record_starts(recorder: Recorder) -> None:
    def wrap(start: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Any, task_type: Any, account_id: int, card_id: int, claim: int) -> Any:
            about = {"type": str(task_type), "card": card_id, "claim": claim}
            try:
                started = await start(self, task_type, account_id, card_id, claim)
            except BaseException:
                recorder.note("start", outcome="unknown", **about)
                raise
            if started is None:
                recorder.note("start", outcome="superseded", **about)
            else:
                _turn.set((str(task_type), card_id, started.claim))
                recorder.note("start", outcome="ok", new_claim=started.claim, **about)
                recorder.reach("after_start")
            return started

        return recorded

    _wrap(PollingQueueManager, "start", wrap)


def _record_admissions(recorder: Recorder) -> None:
    def wrap(acquire: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Any, *args: Any) -> Any:
            try:
                return await acquire(self, *args)
            except BaseException:
                recorder.note("admission", outcome="unknown", **_about_turn())
                raise

        return recorded

    _wrap(AccountConcurrency, "acquire", wrap)


def _record_endings(recorder: Recorder) -> None:
    def wrap(end: Callable[..., Awaitable[bool]]) -> Callable[..., Awaitable[bool]]:
        async def recorded(self: Any, *args: Any) -> bool:
            try:
                kept = await end(self, *args)
            except BaseException:
                recorder.note("write_back", outcome="unknown", **_about_turn())
                raise
            recorder.note("write_back", outcome="ok" if kept else "superseded", **_about_turn())
            recorder.reach("after_write_back")
            return kept

        return recorded

    _wrap(PollingQueueManager, "write_back", wrap)
    _wrap(PollingQueueManager, "remove_claimed", wrap)


def _record_handlers(recorder: Recorder) -> None:
    def around(op: str, place: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def wrap(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def recorded(self: Any, *args: Any) -> Any:
                about = _about_turn()
                if op == "gw_call":
                    recorder.reach("before_gw")
                    recorder.note("gw_begin", **about)
                try:
                    answer = await call(self, *args)
                except BaseException as error:
                    recorder.note(op, outcome=type(error).__name__, **about)
                    raise
                recorder.note(op, outcome="ok", **about)
                recorder.reach(place)
                return answer

            return recorded

        return wrap

    for handler in (CarddataHandler, CardstatusHandler, RealnameHandler):
        _wrap(handler, "ask", around("gw_call", "after_gw"))
        _wrap(handler, "commit", around("commit", "after_commit"))


def _record_acks(recorder: Recorder) -> None:
    def wrap(ack: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Broker, queue: str, acks: Any) -> Any:
            rows = []
            for item in acks:
                if queue == POLLING_QUEUE and item.kind is AckKind.DONE:
                    task_type, card, claim = item.task.message.id.rsplit(":", 2)
                    rows.append({"type": task_type, "card": int(card), "claim": int(claim)})
            if rows:
                recorder.notes("done", rows)
            return await ack(self, queue, acks)

        return recorded

    _wrap(Broker, "ack", wrap)


def _record_terms(recorder: Recorder) -> None:
    def wrap_elected(elected: Callable[..., None]) -> Callable[..., None]:
        def recorded(self: Any, term: Term) -> None:
            recorder.note("elected", epoch=term.epoch)
            elected(self, term)
            recorder.reach("after_acquire")

        return recorded

    def wrap_end(end: Callable[..., None]) -> Callable[..., None]:
        def recorded(self: Term, reason: Any) -> None:
            if self.end_reason is None:
                recorder.note("demote", epoch=self.epoch, reason=str(reason))
            end(self, reason)

        return recorded

    _wrap(LeaderElector, "elected", wrap_elected)
    _wrap(Term, "end", wrap_end)


def _record_cron(recorder: Recorder) -> None:
    def wrap(record: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def recorded(self: SchedulerView, entry_id: str, task_id: str, now: float) -> None:
            recorder.note("cron", entry=entry_id, instant=int(task_id.rpartition(":")[2]))
            await record(self, entry_id, task_id, now)

        return recorded

    _wrap(SchedulerView, "record", wrap)


def _fail_pages(recorder: Recorder) -> None:
    def wrap(add: Callable[..., Awaitable[int]]) -> Callable[..., Awaitable[int]]:
        async def recorded(self: Any, places: Any) -> int:
            added = await add(self, places)
            recorder.reach(f"init_page_{recorder.next_page()}")
            return added

        return recorded

    _wrap(PollingQueueManager, "add_places", wrap)


def _fail_cleanups(recorder: Recorder) -> None:
    def wrap(process: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def recorded(self: Any, task: Any) -> None:
            recorder.reach("cleanup")
            await process(self, task)

        return recorded

    _wrap(DataCleanupHandler, "process_task", wrap)


def hoard_memory(*, killed: bool) -> None:
    """Take memory up to a limit nearby; then raise MemoryError, or die as the kernel would have it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + HOARD_BYTES, limits[1]))
    hoard = []
    try:
        while True:
            hoard.append(bytearray(1 << 20))
    except MemoryError:
        if not killed:
            raise
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        hoard.clear()
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _hasten_queue(tuning: dict[str, float]) -> None:
    """Shorten the leases of tasks: a server takes the default intervals, one object."""
    (intervals,) = (field.default for field in fields(ServerConfig) if field.name == "intervals")
    for name, seconds in tuning.items():
        object.__setattr__(intervals, name, timedelta(seconds=seconds))


def _tune(tuning: dict[str, float]) -> None:
    figures: dict[str, Any] = {
        name: value if name in {"init_page", "high_water", "low_water"} else timedelta(seconds=value)
        for name, value in tuning.items()
    }

    def wrap(init: Callable[..., None]) -> Callable[..., None]:
        def tuned(self: PollingSettings, **given: Any) -> None:
            init(self, **{**given, **figures})

        return tuned

    _wrap(PollingSettings, "__init__", wrap)


def _shift_wall_clock(seconds: float) -> None:
    """Let this process believe in another time; its monotonic clock and the servers' stay as they are.

    What talks to the carrier keeps the true time: a carrier rightly refuses signatures that are an hour off,
    and we readings of the future.
    """

    class TrueClock(SystemClock):
        now = SystemClock.now

    setattr(http, "SystemClock", TrueClock)  # noqa: B010 - for this process only
    real, real_ns = time.time, time.time_ns

    def now(_: SystemClock) -> datetime:
        return datetime.fromtimestamp(real() + seconds, UTC)

    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)
    _wrap(SystemClock, "now", lambda _: now)
