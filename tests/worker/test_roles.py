"""The role table is the spec's, and nothing reads another one."""

from junhong_cmp.config import WorkerRole
from junhong_cmp.worker.roles import ENABLED_MODULES, ModuleName, disabled_modules, enabled_modules

SINGLETONS = ("polling_initializer", "polling_scheduler", "asynq_scheduler")


def test_every_role_is_in_the_table() -> None:
    assert set(ENABLED_MODULES) == set(WorkerRole)


def test_all_and_leader_run_everything_in_start_order() -> None:
    for role in (WorkerRole.ALL, WorkerRole.LEADER):
        assert enabled_modules(role) == ("queue_server", *SINGLETONS)
        assert disabled_modules(role) == ()


def test_a_consumer_runs_the_queue_server_alone() -> None:
    assert enabled_modules(WorkerRole.CONSUMER) == ("queue_server",)
    assert disabled_modules(WorkerRole.CONSUMER) == SINGLETONS


def test_every_module_is_enabled_or_disabled() -> None:
    for role in WorkerRole:
        assert sorted((*enabled_modules(role), *disabled_modules(role))) == sorted(ModuleName)
