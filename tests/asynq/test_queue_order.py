from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.asynq.queue_order import QueueOrder

WEIGHTS = {"high": 6, "middle": 3, "low": 1}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1),
    st.sets(st.sampled_from("abcdef")),
    st.integers(-1, 500),
    st.booleans(),
)
def test_all_free_slots_are_offered_to_ready_queues_only(
    priorities: dict[str, int],
    ready: set[str],
    free: int,
    strict: bool,  # noqa: FBT001 - hypothesis fills it
) -> None:
    plan = QueueOrder(priorities, strict=strict).shares(ready, free)
    names = [name for name, _ in plan]
    assert set(names) <= ready & set(priorities)
    assert len(set(names)) == len(names)
    assert all(count > 0 for _, count in plan)
    expected = max(free, 0) if ready & set(priorities) else 0
    assert sum(count for _, count in plan) == expected


def test_many_slots_are_split_by_weight() -> None:
    assert dict(QueueOrder(WEIGHTS, strict=False).shares(WEIGHTS, 100)) == {
        "high": 60,
        "middle": 30,
        "low": 10,
    }


def test_one_slot_goes_to_a_queue_as_often_as_its_weight_says() -> None:
    order = QueueOrder(WEIGHTS, strict=False)
    asked = Counter(order.shares(WEIGHTS, 1)[0][0] for _ in range(5000))
    assert 2700 < asked["high"] < 3300
    assert 350 < asked["low"] < 650


def test_a_strict_order_asks_the_highest_ready_queue() -> None:
    order = QueueOrder(WEIGHTS, strict=True)
    assert order.shares(["low", "middle"], 7) == [("middle", 7)]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 20)),
    st.integers(0, 500),
    st.booleans(),
)
def test_no_queue_is_asked_for_more_than_it_has_room_for(
    priorities: dict[str, int],
    rooms: dict[str, int],
    free: int,
    strict: bool,  # noqa: FBT001 - hypothesis fills it
) -> None:
    plan = QueueOrder(priorities, strict=strict).shares(list(priorities), free, rooms)
    assert all(0 < count <= rooms[name] for name, count in plan)
    assert sum(count for _, count in plan) <= free
    assert bool(plan) == bool(free and rooms.keys() & priorities.keys())
