from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.planner import ShardPlanner
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import TaskType

SHARDS = [ShardId(TaskType.POLLING_CARDDATA, 7, number) for number in range(8)]


def test_an_unknown_shard_is_asked() -> None:
    planner = ShardPlanner(recheck_ms=1000)
    assert planner.plan(SHARDS[:2], 10, 0) == {SHARDS[0]: 5, SHARDS[1]: 5}
    assert planner.next_look(SHARDS, 0) == 0


def test_a_shard_is_asked_when_its_next_card_is_due_or_after_a_while() -> None:
    planner = ShardPlanner(recheck_ms=1000)
    planner.learn(SHARDS[0], 5300, 5000)
    planner.learn(SHARDS[1], 99_000, 5000)
    planner.learn(SHARDS[2], None, 5000)
    three = SHARDS[:3]
    assert planner.next_look(three, 5000) == 5300
    assert planner.plan(three, 10, 5299) == {}
    assert planner.plan(three, 10, 5300) == {SHARDS[0]: 10}
    assert set(planner.plan(three, 10, 6000)) == set(three)


def test_the_longest_due_comes_first_when_the_allowance_is_small() -> None:
    planner = ShardPlanner(recheck_ms=1000)
    for number, due in enumerate((300, 100, 200)):
        planner.learn(SHARDS[number], due, 50)
    assert planner.plan(SHARDS[:3], 1, 500) == {SHARDS[1]: 1}


@given(st.integers(0, 500), st.lists(st.integers(0, 2000), min_size=8, max_size=8))
def test_never_more_than_the_allowance_and_all_of_it_if_any_shard_is_asked(
    allowance: int, dues: list[int]
) -> None:
    planner = ShardPlanner(recheck_ms=10_000)
    for shard, due in zip(SHARDS, dues, strict=True):
        planner.learn(shard, due, 0)
    planned = planner.plan(SHARDS, allowance, 1000)
    assert all(limit > 0 for limit in planned.values())
    assert sum(planned.values()) == (allowance if min(dues) <= 1000 else 0)


def test_no_shards_means_a_look_later() -> None:
    assert ShardPlanner(recheck_ms=1000).next_look([], 500) == 1500
