"""KEYS and ARGV that all of the inspector's scripts begin with (``_places.lua``)."""

from junhong_cmp.asynq.keys import QueueKeys
from junhong_cmp.asynq.scripting import ScriptArg


def place_keys(keys: QueueKeys) -> list[str]:
    """Return where a queue keeps the tasks of each state."""
    return [
        keys.pending,
        keys.active,
        keys.lease,
        keys.scheduled,
        keys.retry,
        keys.archived,
        keys.completed,
        keys.groups,
        keys.aggregation_sets,
    ]


def place_args(keys: QueueKeys, now: float) -> list[ScriptArg]:
    """Return the queue's prefix and the time in seconds and nanoseconds."""
    return [keys.prefix, int(now), int(now * 1e9)]
