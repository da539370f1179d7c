"""Proves the invariants of polling from what was recorded, after everything has ended.

It is given the histories of all processes (``tests/chaos/recorder.py``), what the carrier saw, and what is
left in Redis and PostgreSQL; it asks none of the workers. Every doubt counts against the system: an enqueue
whose outcome nobody lived to record counts as done. The rules are tested themselves, with doctored histories.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from junhong_cmp.asynq.cron import CronSchedule
from junhong_cmp.gateway.simulator_log import CallRecord, summarise

Event = dict[str, Any]
Place = tuple[str, int]
"""A task type and a card."""


class Histories:
    """Histories are read while they grow: each line once, however often somebody asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._events: list[Event] = []

    def read(self) -> list[Event]:
        """Return the events of all processes in order of time; a line cut by a kill is left out."""
        grown = False
        for path in self._folder.glob("history-*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._offsets[path] = self._offsets.get(path, 0) + len(whole) + 1
                self._events += map(orjson.loads, whole.split(b"\n"))
                grown = True
        if grown:
            self._events.sort(key=lambda event: (event["mono"], event["pid"], event["seq"]))
        return self._events


@dataclass(frozen=True)
class Remains:
    """What is left at the end: places that must be, places found, firings found, entries, misses told of."""

    wanted: frozenset[Place]
    found: Mapping[Place, int]
    fired: frozenset[tuple[str, int]] = frozenset()
    entries: Mapping[str, str] = field(default_factory=dict)
    missed: frozenset[tuple[str, int]] = frozenset()


@dataclass
class Verdict:
    """What the checker found; each fault in words, counted under its heading."""

    faults: list[tuple[str, str]] = field(default_factory=list)

    def accuse(self, heading: str, words: str) -> None:
        self.faults.append((heading, words))

    def count(self, heading: str) -> int:
        return sum(found == heading for found, _ in self.faults)

    @property
    def figures(self) -> dict[str, int]:
        return {name: self.count(name) for name in HEADINGS}

    def __str__(self) -> str:
        return "\n".join(f"{heading}: {words}" for heading, words in self.faults[:30]) or "no fault"


HEADINGS = ("lost", "doubled", "stale_enqueues", "cron_unexplained", "untrue_acks", "two_leaders")


def check(events: Sequence[Event], calls: Iterable[CallRecord], remains: Remains) -> Verdict:
    """Check everything; an empty list of faults is the proof."""
    verdict = Verdict()
    history = History(events)
    _check_places(verdict, remains)
    _check_liveness(verdict, history, remains)
    _check_calls(verdict, calls)
    _check_claims(verdict, history)
    _check_starts(verdict, history)
    _check_terms(verdict, history)
    _check_acks(verdict, history)
    _check_cron(verdict, history, remains)
    return verdict


class History:
    """A history gives the events by operation."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._by_op: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            self._by_op[event["op"]].append(event)

    def __getitem__(self, op: str) -> list[Event]:
        return self._by_op.get(op, [])

    def flushed_between(self, after: float, before: float) -> bool:
        """Whether Redis lost data in this span of the monotonic clock."""
        return any(after <= event["mono"] <= before for event in self["flush"])


def _place(event: Event) -> Place:
    return event["type"], event["card"]


def _claim(event: Event) -> tuple[str, int, int]:
    return event["type"], event["card"], event["claim"]


def _check_places(verdict: Verdict, remains: Remains) -> None:
    """Invariant 1: every enabled card is in exactly one shard per type."""
    for place in remains.wanted:
        if remains.found.get(place, 0) != 1:
            verdict.accuse("lost", f"{place} stands in {remains.found.get(place, 0)} shards")
    for place in remains.found.keys() - remains.wanted:
        verdict.accuse("lost", f"{place} has no business in a shard")


def _check_liveness(verdict: Verdict, history: History, remains: Remains) -> None:
    """Invariant 11: after the last fault every card is polled again."""
    healed = max((event["mono"] for event in history["healed"]), default=float("inf"))
    polled = {
        _place(event) for event in history["commit"] if event["outcome"] == "ok" and event["mono"] >= healed
    }
    for place in remains.wanted - polled:
        verdict.accuse("lost", f"{place} was not polled after the last fault")


def _check_calls(verdict: Verdict, calls: Iterable[CallRecord]) -> None:
    """Invariant 2, as the carrier saw it."""
    for overlap in summarise(calls).overlaps:
        verdict.accuse("doubled", f"{overlap.first.op} of {overlap.first.iccid} asked twice at once")


def _check_claims(verdict: Verdict, history: History) -> None:
    """Claims of a card differ and grow, or somebody could mistake another's for its own."""
    given: dict[Place, list[tuple[int, Event]]] = defaultdict(list)
    for event in history["claim"]:
        given[_place(event)].append((event["claim"], event))
    for place, claims in given.items():
        claims.sort(key=lambda pair: pair[0])
        for (lower, earlier), (higher, later) in itertools.pairwise(claims):
            if lower == higher:
                verdict.accuse("doubled", f"{place} was claimed twice as {lower}")
            elif earlier["began"] > later["mono"] and not history.flushed_between(
                later["began"], earlier["mono"]
            ):
                verdict.accuse("doubled", f"{place}: claim {lower} was given after {higher}")


def _check_starts(verdict: Verdict, history: History) -> None:
    """A claim is started once, asked for once, and only if a leader enqueued it."""
    started = [event for event in history["start"] if event["outcome"] == "ok"]
    last: dict[tuple[str, int, int], float] = {}
    for event in started:
        before = last.get(_claim(event))
        if before is not None and not history.flushed_between(before, event["mono"]):
            verdict.accuse("doubled", f"{_claim(event)} was started twice")
        last[_claim(event)] = event["mono"]
    for claim, times in Counter(_claim(event) for event in history["gw_begin"]).items():
        if times > 1:
            verdict.accuse("doubled", f"{claim} was asked for {times} times")
    enqueued = {_claim(event) for event in history["enqueue"]}
    for event in started:
        if _claim(event) not in enqueued:
            verdict.accuse("doubled", f"{_claim(event)} was started, and nobody enqueued it")


def _check_terms(verdict: Verdict, history: History) -> None:
    """Invariant 3: once a higher epoch is elected, a lower one submits nothing; an epoch has one holder.

    A leader robbed of a lease it could trust goes on until the shards are sealed: the fence binds it.
    """
    elections = sorted((event["epoch"], event["mono"], event["pid"]) for event in history["elected"])
    for (epoch, _, pid), (other, _, other_pid) in itertools.pairwise(elections):
        if epoch == other and pid != other_pid:
            verdict.accuse("two_leaders", f"epoch {epoch} has two holders")
    successors = [(epoch, mono) for epoch, mono, _ in elections]
    known = {epoch for epoch, _ in successors}
    for event in history["enqueue"]:
        if successors and event["epoch"] not in known:
            verdict.accuse("stale_enqueues", f"{_claim(event)} enqueued under no term")
        elif not history["robbing"] and any(
            epoch > event["epoch"] and mono < event["mono"] for epoch, mono in successors
        ):
            verdict.accuse("stale_enqueues", f"{_claim(event)} enqueued under past epoch {event['epoch']}")
    first: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    for event in sorted(history["claim"], key=lambda event: float(event["mono"])):
        seen = first[tuple(event["shard"])]
        if any(
            epoch > event["epoch"]
            and mono < event["began"]
            and not history.flushed_between(mono, event["mono"])
            for epoch, mono in seen
        ):
            verdict.accuse("stale_enqueues", f"{_claim(event)} passed the fence of a later term")
        if not any(epoch == event["epoch"] for epoch, _ in seen):
            seen.append((event["epoch"], event["mono"]))


def _check_acks(verdict: Verdict, history: History) -> None:
    """Invariant 4: no ack before commit and write-back.

    A superseded poll owes nothing. One that Redis failed owes an attempt: it claims nothing, and its claim
    runs out.
    """
    starts: dict[tuple[int, tuple[str, int, int]], list[Event]] = defaultdict(list)
    for event in history["start"]:
        starts[event["pid"], _claim(event)].append(event)
    ends = _by_claim([*history["write_back"], *history["admission"]])
    commits = _by_claim(history["commit"])
    answers = _by_claim(history["gw_call"])
    for ack in history["done"]:
        told = [start for start in starts[ack["pid"], _claim(ack)] if start["seq"] < ack["seq"]]
        if not told:
            verdict.accuse("untrue_acks", f"{_claim(ack)} acknowledged without a start")
        for start in (start for start in told[-1:] if start["outcome"] == "ok"):
            key = (ack["pid"], (*_place(start), start["new_claim"]))
            ended = [end for end in ends[key] if end["seq"] < ack["seq"]]
            if not ended:
                verdict.accuse("untrue_acks", f"{_claim(ack)} acknowledged without a write-back")
            elif any(answer["outcome"] == "ok" for answer in answers[key]) and not any(
                commit["seq"] < ended[0]["seq"] for commit in commits[key]
            ):
                verdict.accuse("untrue_acks", f"{_claim(ack)} written back without a commit")


def _by_claim(events: Iterable[Event]) -> dict[tuple[int, tuple[str, int, int]], list[Event]]:
    found: dict[tuple[int, tuple[str, int, int]], list[Event]] = defaultdict(list)
    for event in events:
        found[event["pid"], _claim(event)].append(event)
    return found


def _check_cron(verdict: Verdict, history: History, remains: Remains) -> None:
    """Invariant 5: a firing happens at most once; one that is missing was told of, or Redis had lost it."""
    told: dict[tuple[str, int], float] = {}
    for event in history["cron"]:
        firing = event["entry"], event["instant"]
        if firing in told and not history.flushed_between(told[firing], event["mono"]):
            verdict.accuse("cron_unexplained", f"{firing} fired twice")
        told[firing] = event["mono"]
    fired: dict[str, set[int]] = defaultdict(set)
    for entry, instant in {*told, *remains.fired}:
        fired[entry].add(instant)
    losses = [(event.get("from_wall") or event["wall"], event["wall"]) for event in history["flush"]]
    for entry, instants in fired.items():
        for instant in _missing(CronSchedule(remains.entries[entry]), sorted(instants)):
            following = min(other for other in instants if other > instant)
            before = max(other for other in instants if other < instant)
            lost = any(before - 1 <= end and start <= following + 1 for start, end in losses)
            if (entry, instant) not in remains.missed and not lost:
                verdict.accuse("cron_unexplained", f"{entry} did not fire at {instant}, and nobody said so")


def _missing(schedule: CronSchedule, fired: Sequence[int]) -> Iterator[int]:
    for before, after in itertools.pairwise(fired):
        due = schedule.due(_instant(before), _instant(after - 1), 10_000)
        yield from (int(run.timestamp()) for run in due)


def _instant(unix_s: int) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)
