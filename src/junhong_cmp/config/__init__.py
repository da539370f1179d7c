"""Configuration: read once at start, checked as a whole, handed out as plain values.

``load`` is what a program calls; ``resolve`` also says where every value came from.
Nothing here touches the network.
"""

from junhong_cmp.config.lease import LeaseConflict, LeaseMode
from junhong_cmp.config.loading import Demand, Resolution, ResolvedValue, load, resolve
from junhong_cmp.config.sections import WorkerRole
from junhong_cmp.config.settings import Settings

__all__ = [
    "Demand",
    "LeaseConflict",
    "LeaseMode",
    "Resolution",
    "ResolvedValue",
    "Settings",
    "WorkerRole",
    "load",
    "resolve",
]
