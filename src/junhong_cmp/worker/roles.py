"""Which role runs which modules: the one table that start, stop and the start-up log read."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from junhong_cmp.config import WorkerRole


class ModuleName(StrEnum):
    """The background modules in start order; stopping reverses it."""

    QUEUE_SERVER = "queue_server"
    POLLING_INITIALIZER = "polling_initializer"
    POLLING_SCHEDULER = "polling_scheduler"
    ASYNQ_SCHEDULER = "asynq_scheduler"


ENABLED_MODULES: Final[Mapping[WorkerRole, frozenset[ModuleName]]] = {
    WorkerRole.ALL: frozenset(ModuleName),
    WorkerRole.LEADER: frozenset(ModuleName),
    WorkerRole.CONSUMER: frozenset({ModuleName.QUEUE_SERVER}),
}

SCHEDULING_ROLES: Final = frozenset(
    role for role, modules in ENABLED_MODULES.items() if ModuleName.POLLING_SCHEDULER in modules
)
"""Roles that carry the singleton scheduling duty."""


def enabled_modules(role: WorkerRole) -> tuple[ModuleName, ...]:
    """Return the modules of ``role`` in start order."""
    return tuple(name for name in ModuleName if name in ENABLED_MODULES[role])


def disabled_modules(role: WorkerRole) -> tuple[ModuleName, ...]:
    """Return the modules that ``role`` leaves to others, in start order."""
    return tuple(name for name in ModuleName if name not in ENABLED_MODULES[role])
