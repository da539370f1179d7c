"""The checker finds every kind of fault: a sound history passes, each way of doctoring it is told by name."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.chaos.checker import HEADINGS, Event, Histories, Remains, check

from junhong_cmp.gateway.simulator_log import CallRecord

TYPE = "polling:carddata"
FIRST, SECOND = 1000, 2000
LEADER, SUCCESSOR, CONSUMER = 10, 11, 12


@dataclass
class Story:
    """What happened, ready to be told wrong."""

    events: list[Event] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    remains: Remains = field(default_factory=lambda: Remains(frozenset(), {}))
    now: float = 100.0
    _seq: "count[int]" = field(default_factory=count)

    def tell(self, op: str, pid: int, **about: Any) -> Event:
        self.now += 0.01
        event = {"mono": self.now, "wall": self.now, "seq": next(self._seq), "pid": pid, "op": op, **about}
        self.events.append(event)
        return event

    def find(self, op: str, nth: int = 0) -> Event:
        return [event for event in self.events if event["op"] == op][nth]

    def drop(self, op: str, nth: int = 0) -> None:
        self.events.remove(self.find(op, nth))

    def repeat(self, op: str, **changes: Any) -> None:
        event = self.find(op)
        self.events.insert(
            self.events.index(event) + 1,
            {**event, "seq": next(self._seq), "mono": event["mono"] + 0.001, **changes},
        )


def poll(story: Story, leader: int, epoch: int, card: int, claim: int) -> None:
    about = {"type": TYPE, "card": card, "claim": claim}
    running = {"type": TYPE, "card": card, "claim": claim + 1}
    began = story.now
    story.tell("claim", leader, epoch=epoch, shard=["carddata", "1", "0"], began=began, **about)
    story.tell("enqueue", leader, epoch=epoch, **about)
    story.tell("enqueued", leader, epoch=epoch, **about)
    story.tell("start", CONSUMER, outcome="ok", new_claim=claim + 1, **about)
    story.tell("gw_begin", CONSUMER, **running)
    story.calls.append(CallRecord(story.now, story.now + 0.005, "usage", f"8986{card}", "demo", "ok"))
    story.tell("gw_call", CONSUMER, outcome="ok", **running)
    story.tell("commit", CONSUMER, outcome="ok", **running)
    story.tell("write_back", CONSUMER, outcome="ok", **running)
    story.tell("done", CONSUMER, **about)


@pytest.fixture
def story() -> Story:
    """Two terms, two cards, three firings, one of them missed and told of."""
    story = Story()
    story.tell("elected", LEADER, epoch=FIRST)
    poll(story, LEADER, FIRST, 1, 5000)
    story.tell("cron", LEADER, entry="redrive", instant=100)
    story.tell("demote", LEADER, epoch=FIRST, reason="x")
    story.tell("elected", SUCCESSOR, epoch=SECOND)
    story.tell("healed", 1)
    poll(story, SUCCESSOR, SECOND, 1, 6000)
    poll(story, SUCCESSOR, SECOND, 2, 6000)
    story.tell("cron", SUCCESSOR, entry="redrive", instant=104)
    story.remains = Remains(
        wanted=frozenset({(TYPE, 1), (TYPE, 2)}),
        found={(TYPE, 1): 1, (TYPE, 2): 1},
        fired=frozenset({("redrive", 100)}),
        entries={"redrive": "@every 2s"},
        missed=frozenset({("redrive", 102)}),
    )
    return story


def found_in(story: Story) -> dict[str, int]:
    return {name: n for name, n in check(story.events, story.calls, story.remains).figures.items() if n}


def test_a_sound_history_passes(story: Story) -> None:
    assert found_in(story) == {}


def _places(**found: int) -> Callable[[Story], None]:
    def doctor(story: Story) -> None:
        places = {(TYPE, int(card.removeprefix("card"))): times for card, times in found.items()}
        story.remains = replace(story.remains, found=places)

    return doctor


def _poll_again_at_once(story: Story) -> None:
    call = story.calls[-1]
    story.calls.append(replace(call, t_start=call.t_start + 0.001, t_end=call.t_end + 1))


def _take_the_answer_from_before_healing(story: Story) -> None:
    story.drop("commit", 2)


def _forget_that_it_healed(story: Story) -> None:
    story.drop("healed")


def _give_an_older_claim_later(story: Story) -> None:
    story.find("claim", 1)["claim"] = 4000


def _claim_under_the_past_term(story: Story) -> None:
    story.find("claim", 2)["epoch"] = FIRST


def _enqueue_under_the_past_term(story: Story) -> None:
    story.find("enqueue", 2)["epoch"] = FIRST


def _enqueue_before_any_election(story: Story) -> None:
    story.find("enqueue", 0)["epoch"] = 17


def _fire_twice(story: Story) -> None:
    story.repeat("cron", pid=SUCCESSOR)


def _miss_a_firing_in_silence(story: Story) -> None:
    story.remains = replace(story.remains, missed=frozenset())


DOCTORED: list[tuple[str, str, Callable[[Story], None]]] = [
    ("a card is in no shard", "lost", _places(card1=1)),
    ("a card is in two shards", "lost", _places(card1=1, card2=2)),
    ("a stranger is in a shard", "lost", _places(card1=1, card2=1, card3=1)),
    ("a card is never polled again", "lost", _take_the_answer_from_before_healing),
    ("nobody says when it healed", "lost", _forget_that_it_healed),
    ("the carrier is asked twice at once", "doubled", _poll_again_at_once),
    ("a claim is given twice", "doubled", lambda story: story.repeat("claim")),
    ("an older claim is given later", "doubled", _give_an_older_claim_later),
    ("a claim is started twice", "doubled", lambda story: story.repeat("start", pid=CONSUMER + 1)),
    ("a started claim asks twice", "doubled", lambda story: story.repeat("gw_begin")),
    ("a poll starts that nobody enqueued", "doubled", lambda story: story.drop("enqueue")),
    ("a past leader enqueues", "stale_enqueues", _enqueue_under_the_past_term),
    ("an unelected leader enqueues", "stale_enqueues", _enqueue_before_any_election),
    ("a past leader passes the fence", "stale_enqueues", _claim_under_the_past_term),
    ("an epoch has two holders", "two_leaders", lambda story: story.repeat("elected", pid=SUCCESSOR)),
    ("an ack comes without a start", "untrue_acks", lambda story: story.drop("start")),
    ("an ack comes without a write-back", "untrue_acks", lambda story: story.drop("write_back")),
    ("a write-back comes without a commit", "untrue_acks", lambda story: story.drop("commit")),
    ("a firing happens twice", "cron_unexplained", _fire_twice),
    ("a firing is missed in silence", "cron_unexplained", _miss_a_firing_in_silence),
]


@pytest.mark.parametrize(
    ("heading", "doctor"), [row[1:] for row in DOCTORED], ids=[row[0] for row in DOCTORED]
)
def test_a_doctored_history_is_found_out(story: Story, heading: str, doctor: Callable[[Story], None]) -> None:
    doctor(story)
    assert heading in found_in(story)


def test_every_heading_can_be_reached() -> None:
    assert {heading for _, heading, _ in DOCTORED} == set(HEADINGS)


def test_firings_lost_with_redis_are_explained(story: Story) -> None:
    _miss_a_firing_in_silence(story)
    story.events.append({**story.find("healed"), "op": "flush", "wall": 102.0})
    assert "cron_unexplained" not in found_in(story)


def test_a_robbed_leader_is_bound_by_the_fence_alone(story: Story) -> None:
    story.find("enqueue", 0)["mono"] = story.find("elected", 1)["mono"] + 0.5
    assert "stale_enqueues" in found_in(story), "nobody was robbed"
    story.events.append({**story.find("healed"), "op": "robbing"})
    assert "stale_enqueues" not in found_in(story)
    _claim_under_the_past_term(story)
    assert "stale_enqueues" in found_in(story)


def test_firings_within_what_was_lost_over_some_time_are_explained(story: Story) -> None:
    _miss_a_firing_in_silence(story)
    story.events.append({**story.find("healed"), "op": "flush", "from_wall": 60.0, "wall": 10_000.0})
    assert "cron_unexplained" not in found_in(story)


def test_a_superseded_poll_owes_nothing(story: Story) -> None:
    late = copy.deepcopy(story.find("start"))
    story.events += [
        {**late, "pid": CONSUMER + 1, "outcome": "superseded", "seq": 900},
        {**story.find("done"), "pid": CONSUMER + 1, "seq": 901},
    ]
    assert found_in(story) == {}


def test_a_line_cut_by_a_kill_is_left_out(tmp_path: Path) -> None:
    whole = {"mono": 1.0, "pid": 1, "seq": 0, "op": "began"}
    (tmp_path / "history-1.jsonl").write_bytes(orjson.dumps(whole) + b'\n{"mono": 2.0, "pi')
    histories = Histories(tmp_path)
    assert histories.read() == [whole]
    with (tmp_path / "history-1.jsonl").open("ab") as file:
        file.write(b'd": 1, "seq": 1, "op": "claim"}\n')
    assert [event["op"] for event in histories.read()] == ["began", "claim"]
