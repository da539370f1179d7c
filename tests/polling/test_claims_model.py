"""The claim protocol under any order of events, on the real scripts: no card lost, none polled twice at once.

A started poll may call the carrier until its claim runs out; then it is dead, and what it does late
must change nothing. Time cannot be moved in Redis, so a claim "runs out" by being set back to due, as
seen from the set: the holder's number no longer stands there, and its slot is free. A Redis that lost
everything, or only what was written last, is sealed by the next term and compared with the cards there are,
as the leader does, who claims nothing until every call has ended that Redis may have forgotten.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis as sync_redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from junhong_cmp.asynq.scripting import LuaScript

PACKAGE = "junhong_cmp.polling"
CARDS = st.integers(1, 4)
VISIBILITY_MS = 60_000
DUE, FENCE, CLAIM = (
    "polling:{carddata:1:0}:due",
    "polling:{carddata:1:0}:fence",
    "polling:{carddata:1:0}:claim",
)
SLOTS, RIDERS, RATE, GRANTED = (
    "polling:{account:1}:" + part for part in ("slots", "riders", "rate", "granted")
)
IN_FLIGHT = -2


class ClaimProtocol(RuleBasedStateMachine):
    """Leaders of several terms, consumers that crash or come late, cards that come and go, lost data."""

    client: Any

    def __init__(self) -> None:
        super().__init__()
        names = ("claim", "start", "write_back", "remove", "seal", "hasten", "admit", "release")
        self.scripts = {
            name: self.client.register_script(
                LuaScript.load(PACKAGE, *(("granted", name) if name == "admit" else (name,))).source
            )
            for name in names
        }
        self.enabled: set[int] = set()
        self.tasks: list[tuple[int, int]] = []  # claims in the task queue; delivered any number of times
        self.polls: list[tuple[int, int]] = []  # started polls that still think they own their card
        self.given: list[tuple[int, int]] = []  # every claim ever given for a card
        self.calls: dict[int, tuple[int, int]] = {}  # under way at the carrier: claim and end of the slot
        self.forgotten: set[int] = set()  # cards of calls under way when data was lost; while any, no claims
        self.saved: dict[str, bytes | None] = {}  # what a replica has that lags behind
        self.given_when_saved: list[tuple[int, int]] = []
        self.epoch = 0

    @initialize()
    def begin(self) -> None:
        self.client.flushdb()
        self.open_term()

    @rule()
    def open_term(self) -> None:
        self.epoch += 1
        assert self.scripts["seal"]([FENCE], [self.epoch]) == str(self.epoch).encode()

    @rule(card=CARDS)
    def add_card(self, card: int) -> None:
        added = self.client.zadd(DUE, {str(card): 1000}, nx=True)
        assert bool(added) == (card not in self.enabled)
        self.enabled.add(card)

    @rule(card=CARDS)
    def remove_card(self, card: int) -> None:
        (removed,) = self.scripts["remove"]([DUE], [card, ""])
        assert bool(removed) == (card in self.enabled)
        self.enabled.discard(card)

    @precondition(lambda self: not self.forgotten)
    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        due_before = {card for card in self.enabled if self.score(card) <= 2000}
        status, _, _, claim, pairs, foreign = self.scripts["claim"](
            [DUE, FENCE, CLAIM], [self.epoch, limit, VISIBILITY_MS, 0]
        )
        cards = [int(card) for card in pairs[::2]]
        assert status == b"OK"
        assert not foreign
        assert set(cards) <= due_before
        assert len(cards) == min(limit, len(due_before))
        self.tasks += [(card, int(claim)) for card in cards]
        self.given += [(card, int(claim)) for card in cards]

    @precondition(lambda self: self.epoch > 1)
    @rule(age=st.integers(1, 3))
    def claim_by_a_past_leader(self, age: int) -> None:
        before = self.scores()
        reply = self.scripts["claim"]([DUE, FENCE, CLAIM], [max(0, self.epoch - age), 10, VISIBILITY_MS, 0])
        assert reply == [b"FENCED", str(self.epoch).encode()]
        assert self.scores() == before

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        card, claim = data.draw(st.sampled_from(self.tasks))
        owned = self.score(card) == claim
        _, new_claim, started = self.scripts["start"]([DUE, CLAIM], [30_000, card, claim])
        assert bool(started) == owned
        if started:
            assert int(new_claim) > claim
            self.polls.append((card, int(new_claim)))
            self.given.append((card, int(new_claim)))
            self.call(card, int(new_claim))

    def call(self, card: int, claim: int) -> None:
        """Ask the carrier, if the account admits it; a card admitted twice would be doubled."""
        admitted = [1000, 1_000_000, 0.001, 60_000, 60_000, "call", 1, f"carddata:{card}"]
        lease, wait = self.scripts["admit"]([SLOTS, RIDERS, RATE, GRANTED], admitted)
        assert wait >= 0 or wait == IN_FLIGHT
        assert (wait == IN_FLIGHT) == (card in self.calls), "a card is in flight once"
        if wait >= 0:
            self.calls[card] = (claim, int(lease))

    def end_call(self, card: int, claim: int) -> None:
        """Have the answer to a poll's call, if it made one."""
        if self.calls.get(card, (0, 0))[0] == claim:
            _, lease = self.calls.pop(card)
            self.scripts["release"]([SLOTS, RIDERS], [f"carddata:{card}", lease])
            self.forgotten.discard(card)

    @precondition(lambda self: self.forgotten)
    @rule()
    def hold_ends(self) -> None:
        """Wait as long as a slot lasts; no call takes longer."""
        for card in self.forgotten:
            self.calls.pop(card)
        self.forgotten.clear()

    @precondition(lambda self: self.polls)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Lose a poll with the process that made it; its claim stands until it runs out."""
        self.polls.remove(data.draw(st.sampled_from(self.polls)))

    @rule()
    def flush(self) -> None:
        """Lose everything, the task queue too; polls under way know nothing of it."""
        self.outlive_claims()
        self.client.flushdb()
        self.tasks.clear()
        self.forgotten |= self.calls.keys()
        self.heal()

    @rule()
    def save(self) -> None:
        self.saved = {key: self.client.dump(key) for key in (DUE, FENCE, CLAIM)}
        self.given_when_saved = list(self.given)

    @precondition(lambda self: self.saved)
    @rule()
    def lose_the_latest_writes(self) -> None:
        """Promote a replica that lags behind; tasks it never heard of may still come from elsewhere.

        So may a task whose start it never heard of: nothing tells it from one that was never started, so it
        is tried when no call is under way. What was given meanwhile it may give again.
        """
        self.outlive_claims()
        for card, (claim, _) in list(self.calls.items()):
            self.end_call(card, claim)
        for key, value in self.saved.items():
            self.client.delete(key)
            if value is not None:
                self.client.restore(key, 0, value)
        self.given = list(self.given_when_saved)
        self.heal()

    def outlive_claims(self) -> None:
        """Wait until time is past what claims had run ahead of it, some milliseconds at most.

        Claims follow the clock and run ahead only while several are given within one millisecond; to notice
        a loss and to open a term takes longer.
        """
        highest = int(self.client.get(CLAIM) or 0)
        while self.now_ms() + VISIBILITY_MS <= highest:
            pass

    def heal(self) -> None:
        """Do what a leader does that finds data lost: a new term, then every card to its place."""
        self.open_term()
        for card in self.enabled:
            self.client.zadd(DUE, {str(card): 1000}, nx=True)
        for card, score in self.scores().items():
            if card not in self.enabled:
                self.scripts["remove"]([DUE], [card, score])

    @precondition(lambda self: self.polls)
    @rule(data=st.data(), soon=st.booleans())
    def write_back(self, data: st.DataObject, *, soon: bool) -> None:
        """Finish a poll, be it in time, late, or a second time."""
        card, claim = data.draw(st.sampled_from(self.polls))
        before, owned = self.scores(), self.score(card) == claim
        self.end_call(card, claim)
        (written,) = self.scripts["write_back"]([DUE], [card, claim, 1500 if soon else 9_000_000_000_000])
        assert bool(written) == owned
        if not owned:
            assert self.scores() == before

    @precondition(lambda self: self.enabled)
    @rule(data=st.data())
    def claim_runs_out(self, data: st.DataObject) -> None:
        card = data.draw(st.sampled_from(sorted(self.enabled)))
        self.client.zadd(DUE, {str(card): 1200}, xx=True)
        if card in self.calls:
            self.end_call(card, self.calls[card][0])

    @rule(card=CARDS)
    def poll_now(self, card: int) -> None:
        before = self.score(card)
        (moved,) = self.scripts["hasten"]([DUE, CLAIM], [card, 1100])
        if before in {claim for _, claim in self.tasks + self.polls}:
            assert not moved, "a claim is never broken by haste"

    @invariant()
    def no_card_is_lost_and_none_is_there_that_should_not_be(self) -> None:
        assert set(self.scores()) == self.enabled

    @invariant()
    def at_most_one_holder_owns_a_card(self) -> None:
        for card in self.enabled:
            owners = {claim for held, claim in self.tasks + self.polls if held == card}
            assert sum(claim == self.score(card) for claim in owners) <= 1

    @invariant()
    def no_claim_was_ever_given_twice_for_a_card(self) -> None:
        assert len(self.given) == len(set(self.given))

    def now_ms(self) -> int:
        seconds, microseconds = self.client.time()
        return int(seconds * 1000 + microseconds // 1000)

    def score(self, card: int) -> int:
        found = self.client.zscore(DUE, str(card))
        return 2**60 if found is None else int(found)

    def scores(self) -> dict[int, int]:
        pairs: list[tuple[bytes, float]] = self.client.execute_command(
            "ZRANGE", DUE, 0, -1, "WITHSCORES", withscores=True
        )
        return {int(card): int(score) for card, score in pairs}


@contextmanager
def machine_on(url: str) -> Iterator[type[ClaimProtocol]]:
    with sync_redis.Redis.from_url(url) as client:
        yield type("ClaimProtocolOnRedis", (ClaimProtocol,), {"client": client})


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
def test_the_protocol_keeps_its_invariants(redis_url: str) -> None:
    with machine_on(redis_url) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=60,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
