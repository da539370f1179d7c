"""A fleet of real workers that is recorded, broken on purpose, and judged at the end."""

import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from tests.chaos.checker import Event, Histories, Place, Remains, Verdict, check
from tests.scenarios.platform import Platform
from tests.waiting import wait_until
from tests.worker_process import ROOT, WorkerProcess

from junhong_cmp.cards.model import Card
from junhong_cmp.gateway.simulator_log import read_log
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.cron import cron_entries

REDRIVE_EVERY = timedelta(seconds=2)
INTERVAL_S = 2
CARDS = 100
HEALED_S = 40.0
"""With the tuning below a claim nobody answers for lapses after six seconds, a started poll after four."""
TUNING = {
    "visibility": 6.0,
    "turn_timeout": 4.0,
    "slot_lease": 4.0,
    "put_back": 0.5,
    "reconcile_every": 5.0,
    "init_page": 25,
}


@dataclass(frozen=True)
class Lease:
    """Times of the lease, in seconds."""

    ttl: float
    renew: float
    retry: float

    def environment(self) -> dict[str, str]:
        return {
            "JUNHONG_LEASE_TTL": f"{int(self.ttl * 1000)}ms",
            "JUNHONG_LEASE_RENEW": f"{int(self.renew * 1000)}ms",
            "JUNHONG_LEASE_RETRY": f"{int(self.retry * 1000)}ms",
        }


DEFAULT = Lease(15, 5, 2)
TUNED = Lease(6, 2, 0.5)
SHORT = Lease(3, 1, 0.3)


@dataclass
class Fleet(Platform):
    """A fleet is a platform whose workers write histories; ``judge`` ends it with a verdict."""

    workers: list[WorkerProcess] = field(default_factory=list)
    lease: Lease = SHORT
    tuning: Mapping[str, float] = field(default_factory=lambda: dict(TUNING))
    intervals: Mapping[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._histories = Histories(self.folder)

    async def enlist(
        self,
        role: str = "consumer",
        *,
        failpoint: str = "",
        wall_shift_s: float = 0.0,
        started: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """Start a recorded worker; it may have to fail at a point of its own."""
        name = f"{role}-{len(self.workers) + 1}"
        environment = {**self.lease.environment(), **self.role_environment(role, name), **(env or {})}
        planted = f"{str(self.folder)!r}, {role!r}, failpoint={failpoint!r}, tuning={dict(self.tuning)!r}"
        planted += f", intervals={dict(self.intervals)!r}"
        prelude = (
            f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.chaos.recorder import plant\n"
            f"plant({planted}, wall_shift_s={wall_shift_s!r})"
        )
        worker = await self._stack.enter_async_context(
            WorkerProcess(environment, cwd=self.folder, prelude=prelude)
        )
        self.workers.append(worker)
        if started:
            await worker.wait_started()
        return worker

    def note(self, op: str, **fields: Any) -> float:
        """Add an event of the test itself; return its instant on the monotonic clock."""
        mono = time.monotonic()
        event = {
            "mono": mono,
            "wall": time.time(),
            "pid": os.getpid(),
            "role": "test",
            "seq": next(self._numbers),
            "op": op,
            **fields,
        }
        with (self.folder / "history-test.jsonl").open("ab") as file:
            file.write(orjson.dumps(event) + b"\n")
        return mono

    def events(self, op: str = "", **fields: Any) -> list[Event]:
        """Return what was recorded so far."""
        return [
            event
            for event in self._histories.read()
            if (not op or event["op"] == op)
            and all(event.get(name) == value for name, value in fields.items())
        ]

    async def event(self, op: str, *, since: float = 0.0, limit_s: float = 30.0, **fields: Any) -> Event:
        """Wait for an event after ``since``; return the first."""
        found: list[Event] = []

        def recorded() -> bool:
            found[:] = [event for event in self.events(op, **fields) if event["mono"] >= since]
            return bool(found)

        await wait_until(recorded, timeout=limit_s, description=f"event {op} {fields}")
        return found[0]

    async def settle(self, cards: Sequence[Card], *, limit_s: float = HEALED_S) -> None:
        """Wait until each card was polled once more from now on; nothing is broken any more."""
        healed = self.note("healed")
        wanted = {card.id for card in cards}

        def polled() -> bool:
            done = {event["card"] for event in self.events("commit", outcome="ok") if event["mono"] >= healed}
            return wanted <= done

        await wait_until(polled, timeout=limit_s, description=f"{len(wanted)} cards polled again")

    async def judge(self, cards: Sequence[Card], *, stopped: bool = True) -> Verdict:
        """Stop the fleet, check what it did, and keep the figures; any fault fails the test."""
        await self.settle(cards)
        if stopped:
            for worker in self.workers:
                if worker.returncode is None:
                    code = await worker.stop()
                    assert code == 0, f"exit code {code}; the end of its log:\n" + "\n".join(worker.raw[-20:])
        verdict = check(self.events(), self._calls(), await self._remains(cards))
        self.figures.update(verdict.figures)
        assert not verdict.faults, str(verdict)
        return verdict

    def _calls(self) -> list[Any]:
        assert self._simulator is not None
        self._simulator._log.flush()
        return list(read_log(self.carrier_log_path))

    async def _remains(self, cards: Sequence[Card]) -> Remains:
        carddata = str(TaskType.POLLING_CARDDATA)
        places: Counter[Place] = Counter()
        for card, times in (await self.members_of_shards()).items():
            places[carddata, int(card)] = times
        entries = {entry.id: entry.spec for entry in cron_entries(redrive_every=REDRIVE_EVERY)}
        fired = {
            (entry, int(task_id.rpartition(":")[2]))
            for entry in entries
            for task_id in await self.cron_firings(entry)
        }
        missed = {
            (record["entry"], int(datetime.fromisoformat(record["scheduled"]).timestamp()))
            for worker in self.workers
            for record in worker.find("定时任务错过")
        }
        return Remains(
            wanted=frozenset((carddata, card.id) for card in cards),
            found=places,
            fired=frozenset(fired),
            entries=entries,
            missed=frozenset(missed),
        )


async def kill(worker: WorkerProcess) -> None:
    worker.signal(signal.SIGKILL)
    await worker.wait_exit()
