from datetime import timedelta

import pytest

from junhong_cmp.asynq.misfire import MisfirePolicy, Step, plan

HOUR = timedelta(hours=1)
NOW = 100_000.0


def steps(*ages: int, policy: MisfirePolicy) -> list[tuple[int, bool, list[int]]]:
    """Ages of runs in seconds, oldest first, and what becomes of them, in ages again."""
    due = [int(NOW) - age for age in ages]
    return [
        (int(NOW) - step.instant, step.fire, [int(NOW) - instant for instant in step.missed])
        for step in plan(due, NOW, policy, HOUR)
    ]


@pytest.mark.parametrize("policy", list(MisfirePolicy))
def test_a_run_on_time_fires_whatever_the_policy(policy: MisfirePolicy) -> None:
    assert steps(3, policy=policy) == [(3, True, [])]
    assert steps(15, policy=policy) == [(15, True, [])]
    assert plan([], NOW, policy, HOUR) == []


def test_skip_never_makes_up() -> None:
    assert steps(120, 60, policy=MisfirePolicy.SKIP) == [(60, False, [120, 60])]
    assert steps(60, 0, policy=MisfirePolicy.SKIP) == [(0, True, [60])]


def test_fire_once_makes_up_with_the_latest() -> None:
    assert steps(120, 60, policy=MisfirePolicy.FIRE_ONCE) == [(60, True, [120, 60])]
    assert steps(60, 0, policy=MisfirePolicy.FIRE_ONCE) == [(0, True, [60])]
    assert steps(7200, 3601, policy=MisfirePolicy.FIRE_ONCE) == [(3601, False, [7200, 3601])]
    assert steps(3600, policy=MisfirePolicy.FIRE_ONCE) == [(3600, True, [3600])]


def test_fire_all_makes_up_each_within_grace() -> None:
    assert steps(9000, 7200, 120, 60, 0, policy=MisfirePolicy.FIRE_ALL) == [
        (7200, False, [9000, 7200]),
        (120, True, [120]),
        (60, True, [60]),
        (0, True, []),
    ]
    assert steps(7200, policy=MisfirePolicy.FIRE_ALL) == [(7200, False, [7200])]


@pytest.mark.parametrize("policy", list(MisfirePolicy))
def test_steps_go_forward_in_time_and_settle_the_latest(policy: MisfirePolicy) -> None:
    made = plan([int(NOW) - age for age in (9000, 5000, 300, 200, 100, 1)], NOW, policy, HOUR)
    assert [step.instant for step in made] == sorted(step.instant for step in made)
    assert made[-1] == Step(int(NOW) - 1, fire=True, missed=made[-1].missed)
