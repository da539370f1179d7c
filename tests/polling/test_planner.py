from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.planner import MOST_A_SHARD, ShardPlanner
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

ACCOUNT = 7
ONE_TYPE = {TaskType.POLLING_CARDDATA: 1}
ALL_TYPES = dict.fromkeys(POLLING_TASK_TYPES, 1)


def make_planner(shards_each: int = 8, *, recheck_ms: int = 1000) -> ShardPlanner:
    def shards(account_ids: tuple[int], task_types: tuple[TaskType]) -> list[ShardId]:
        return [ShardId(task_types[0], account_ids[0], number) for number in range(shards_each)]

    return ShardPlanner(shards, recheck_ms=recheck_ms)


def shard(number: int, task_type: TaskType = TaskType.POLLING_CARDDATA) -> ShardId:
    return ShardId(task_type, ACCOUNT, number)


def test_an_unknown_shard_is_asked() -> None:
    planner = make_planner(2)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 0
    assert planner.plan(ACCOUNT, ONE_TYPE, 10, 0) == {shard(0): 5, shard(1): 5}


def test_a_shard_is_asked_when_its_next_card_is_due_or_after_a_while() -> None:
    planner = make_planner(3)
    for number, due in enumerate((5300, 99_000, None)):
        planner.learn(shard(number), due, 5000)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 5300
    assert planner.plan(ACCOUNT, ONE_TYPE, 10, 5299) == {}
    assert planner.plan(ACCOUNT, ONE_TYPE, 10, 5300) == {shard(0): 10}
    assert set(planner.plan(ACCOUNT, ONE_TYPE, 10, 6000)) == {shard(0), shard(1), shard(2)}


def test_the_longest_due_comes_first_when_the_allowance_is_small() -> None:
    planner = make_planner(3)
    for number, due in enumerate((300, 100, 200)):
        planner.learn(shard(number), due, 50)
    assert planner.plan(ACCOUNT, ONE_TYPE, 1, 500) == {shard(1): 1}


@given(st.integers(0, 5000), st.lists(st.integers(0, 2000), min_size=8, max_size=8))
def test_never_more_than_the_allowance_and_all_of_it_if_the_shards_can_take_it(
    allowance: int, dues: list[int]
) -> None:
    planner = make_planner(recheck_ms=10_000)
    for number, due in enumerate(dues):
        planner.learn(shard(number), due, 0)
    planned = planner.plan(ACCOUNT, ONE_TYPE, allowance, 1000)
    assert all(0 < limit <= MOST_A_SHARD for limit in planned.values())
    asked = sum(due <= 1000 for due in dues)
    assert sum(planned.values()) == min(allowance, asked * MOST_A_SHARD)


def test_task_types_share_alike_however_long_one_of_them_is_due() -> None:
    planner = make_planner()
    planned = planner.plan(ACCOUNT, ALL_TYPES, 90, 1000)
    for task_type in POLLING_TASK_TYPES:
        assert sum(limit for one, limit in planned.items() if one.task_type is task_type) == 30


def test_a_type_at_rest_is_not_asked() -> None:
    planner = make_planner()
    assert {one.task_type for one in planner.plan(ACCOUNT, ONE_TYPE, 90, 1000)} == set(ONE_TYPE)


def test_with_one_card_a_round_each_type_has_its_turn() -> None:
    planner = make_planner()
    asked = [next(iter(planner.plan(ACCOUNT, ALL_TYPES, 1, 1000))).task_type for _ in range(6)]
    assert sorted(asked) == sorted((*POLLING_TASK_TYPES, *POLLING_TASK_TYPES))


def test_a_notice_brings_a_look_forward_and_never_puts_it_off() -> None:
    planner = make_planner(1, recheck_ms=10_000)
    planner.learn(shard(0), 9000, 0)
    planner.hear(shard(0), 3000)
    planner.hear(shard(0), 5000)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 3000


def test_notices_of_shards_nobody_has_are_ignored() -> None:
    planner = make_planner(1)
    planner.learn(shard(0), 900, 0)
    planner.hear(shard(5), 0)
    planner.hear(ShardId(TaskType.POLLING_CARDDATA, 99, 0), 0)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 900


def test_a_planner_that_forgets_asks_every_shard() -> None:
    planner = make_planner(2)
    for number in range(2):
        planner.learn(shard(number), 900, 0)
    planner.forget()
    assert set(planner.plan(ACCOUNT, ONE_TYPE, 10, 0)) == {shard(0), shard(1)}


def test_calls_about_several_cards_are_filled_one_shard_after_the_other() -> None:
    planner = make_planner(4)
    assert planner.plan(ACCOUNT, {TaskType.POLLING_CARDDATA: 100}, 2, 0) == {shard(0): 100, shard(1): 100}
    assert planner.plan(ACCOUNT, {TaskType.POLLING_CARDDATA: 100}, 100, 0) == {
        shard(number): 200 for number in range(4)
    }
    assert planner.plan(ACCOUNT, {TaskType.POLLING_CARDDATA: 1000}, 1, 0) == {shard(0): MOST_A_SHARD}


def test_task_types_share_calls_whatever_their_sizes() -> None:
    planner = make_planner(8)
    sizes = {TaskType.POLLING_CARDDATA: 100, TaskType.POLLING_REALNAME: 1}
    planned = planner.plan(ACCOUNT, sizes, 8, 0)
    by_type = dict.fromkeys(sizes, 0)
    for one, limit in planned.items():
        by_type[one.task_type] += limit
    assert by_type == {TaskType.POLLING_CARDDATA: 400, TaskType.POLLING_REALNAME: 4}


def test_a_shard_that_gathers_is_left_alone_for_a_while() -> None:
    planner = make_planner(1, recheck_ms=30_000)
    planner.learn(shard(0), 5001, 5000, gather_ms=1000)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 6000
    planner.hear(shard(0), 5200)
    assert planner.next_look(ACCOUNT, ONE_TYPE) == 5200, "what somebody asks for does not wait"
