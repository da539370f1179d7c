"""Writes down what a worker decides, from inside its process, and fails it at a named point.

A test plants it by a prelude; the product knows nothing of it. Each process appends to a file of its own,
one JSON object a line: ``mono`` (seconds of the machine's monotonic clock, the same for every process),
``wall``, ``seq``, ``pid``, ``role``, ``op``, and what the operation is about. Lines go to the kernel at once,
so that a killed process has told everything up to its end.
"""

import itertools
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from tests.chaos.failpoint import Failpoint

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.scheduler_view import SchedulerView
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.cards.model import Card
from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway import http
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.leadership.elector import LeaderElector
from junhong_cmp.leadership.term import Term
from junhong_cmp.polling.batch_payload import BatchPayload, decode_poll
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_batches import ShardBatches
from junhong_cmp.polling.shard_scripts import ClaimBatch, ShardScripts, Started
from junhong_cmp.polling.tasks import POLLING_QUEUE, POLLING_TASK_TYPES

_claims: ContextVar[Mapping[int, int]] = ContextVar("claims", default=MappingProxyType({}))
"""Of the cards a task is about, the claims they were started with."""


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
        self.failpoint.act()

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
        async def recorded(self: ShardScripts, limits: Any, *, epoch: int, **terms: Any) -> list[Any]:
            recorder.reach("before_claim")
            began = time.monotonic()
            batches = await claim(self, limits, epoch=epoch, **terms)
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
                    for about in _polls_of(str(task.type), task.payload):
                        key = (about["type"], about["card"], about["claim"])
                        rows.append({**about, "epoch": recorder.epoch_of(key)})
            if rows:
                recorder.notes("enqueue", rows)
            results = await enqueue_many(self, items)
            if rows:
                recorder.notes("enqueued", rows)
                recorder.reach("after_enqueue")
            return results

        return recorded

    _wrap(Client, "enqueue_many", wrap)


def _polls_of(task_type: str, payload: bytes) -> list[dict[str, Any]]:
    """Return what a poll task is about, a card each, by the claim it was enqueued with; others are none."""
    if task_type not in set(POLLING_TASK_TYPES):
        return []
    decoded = decode_poll(payload)
    polls = decoded.cards if isinstance(decoded, BatchPayload) else [decoded]
    return [{"type": task_type, "card": poll.card_id, "claim": poll.claim} for poll in polls]


def _about(task_type: Any, card_ids: Iterable[int]) -> list[dict[str, Any]]:
    """Return what the poll under way is about, by the claims its cards were started with."""
    claims = _claims.get()
    return [{"type": str(task_type), "card": card, "claim": claims.get(card, 0)} for card in card_ids]


Step = Callable[..., Awaitable[Any]]
Places = Sequence[tuple[Any, ...]]
"""Shard, card, claim, and what else a step takes, a card each."""


def _record_starts(recorder: Recorder) -> None:
    def note(places: Places, outcomes: Sequence[Any]) -> None:
        rows = []
        started: dict[int, int] = {}
        for (shard, card, claim), outcome in zip(places, outcomes, strict=True):
            row = {"type": str(shard.task_type), "card": card, "claim": claim}
            if isinstance(outcome, Started):
                started[card] = outcome.claim
                rows.append({**row, "outcome": "ok", "new_claim": outcome.claim})
            else:
                rows.append({**row, "outcome": "superseded" if outcome is None else "unknown"})
        recorder.notes("start", rows)
        if started:
            _claims.set(started)
            recorder.reach("after_start")

    _wrap(ShardBatches, "start", _noting_one(note))
    _wrap(ShardBatches, "start_all", _noting_all(note))


def _record_endings(recorder: Recorder) -> None:
    def note(places: Places, outcomes: Sequence[Any]) -> None:
        rows = []
        for (shard, card, claim, *_), kept in zip(places, outcomes, strict=True):
            outcome = "unknown" if isinstance(kept, BaseException) else "ok" if kept else "superseded"
            rows.append({"type": str(shard.task_type), "card": card, "claim": claim, "outcome": outcome})
        recorder.notes("write_back", rows)
        if any(row["outcome"] != "unknown" for row in rows):
            recorder.reach("after_write_back")

    for name in ("write_back", "remove"):
        _wrap(ShardBatches, name, _noting_one(note))
        _wrap(ShardBatches, f"{name}_all", _noting_all(note))


def _noting_one(note: Callable[[Places, Sequence[Any]], None]) -> Callable[[Step], Step]:
    """Note how a step of one card went, before its caller learns it."""

    def wrap(step: Step) -> Step:
        async def recorded(self: Any, *place: Any) -> Any:
            try:
                outcome = await step(self, *place)
            except BaseException as error:
                note([place], [error])
                raise
            note([place], [outcome])
            return outcome

        return recorded

    return wrap


def _noting_all(note: Callable[[Places, Sequence[Any]], None]) -> Callable[[Step], Step]:
    """Note how a step of the cards of one task went, before its caller learns it."""

    def wrap(step: Step) -> Step:
        async def recorded(self: Any, places: Places) -> Any:
            try:
                outcomes = await step(self, places)
            except BaseException as error:
                note(places, [error] * len(places))
                raise
            note(places, outcomes)
            return outcomes

        return recorded

    return wrap


def _record_admissions(recorder: Recorder) -> None:
    def wrap(acquire: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Any, account: Any, task_type: Any, card_ids: Sequence[int]) -> Any:
            try:
                return await acquire(self, account, task_type, card_ids)
            except BaseException:
                rows = _about(task_type, card_ids)
                recorder.notes("admission", [{"outcome": "unknown", **about} for about in rows])
                raise

        return recorded

    _wrap(AccountConcurrency, "acquire_batch", wrap)


def _record_handlers(recorder: Recorder) -> None:
    for handler in (CarddataHandler, CardstatusHandler, RealnameHandler):
        _wrap(handler, "ask", _recording_questions(recorder))
        _wrap(handler, "ask_batch", _recording_questions(recorder))
        _wrap(handler, "commit", _recording_commits(recorder))
        _wrap(handler, "commit_batch", _recording_commits(recorder))


def _recording_questions(recorder: Recorder) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Any, gateway: Any, account: Any, cards: Any) -> Any:
            card_ids = [card.card_id for card in ([cards] if isinstance(cards, CardRef) else cards)]
            rows = _about(self.task_type, card_ids)
            recorder.reach("before_gw")
            recorder.notes("gw_begin", rows)
            try:
                answer = await ask(self, gateway, account, cards)
            except BaseException as error:
                recorder.notes("gw_call", [{"outcome": type(error).__name__, **about} for about in rows])
                raise
            told = answer if isinstance(answer, Mapping) else dict.fromkeys(card_ids, answer)
            recorder.notes("gw_call", [{"outcome": _outcome(told.get(row["card"])), **row} for row in rows])
            recorder.reach("after_gw")
            return answer

        return recorded

    return wrap


def _recording_commits(recorder: Recorder) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(commit: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Any, *given: Any) -> Any:
            is_batch = not isinstance(given[0], Card)
            card_ids = [card.id for card, _ in given[0]] if is_batch else [given[0].id]
            rows = _about(self.task_type, card_ids)
            try:
                outcome = await commit(self, *given)
            except BaseException as error:
                recorder.notes("commit", [{"outcome": type(error).__name__, **about} for about in rows])
                raise
            outcomes = outcome if is_batch else [outcome]
            recorder.notes(
                "commit",
                [{"outcome": _outcome(one), **about} for one, about in zip(outcomes, rows, strict=True)],
            )
            recorder.reach("after_commit")
            return outcome

        return recorded

    return wrap


def _outcome(result: Any) -> str:
    return type(result).__name__ if result is None or isinstance(result, BaseException) else "ok"


def _record_acks(recorder: Recorder) -> None:
    def wrap(ack: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def recorded(self: Broker, queue: str, acks: Any) -> Any:
            rows = []
            for item in acks:
                if queue == POLLING_QUEUE and item.kind is AckKind.DONE:
                    rows += _polls_of(item.task.message.type, item.task.message.payload)
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
