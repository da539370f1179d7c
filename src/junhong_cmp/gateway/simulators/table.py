"""The carriers that can be simulated: a row for each driver."""

from collections.abc import Callable, Mapping
from typing import Final

from junhong_cmp.gateway.simulators.ctcc import CtccDialect
from junhong_cmp.gateway.simulators.dialect import Dialect, SimulatorParts
from junhong_cmp.gateway.simulators.generic import GenericDialect
from junhong_cmp.gateway.simulators.onelink import OneLinkDialect
from junhong_cmp.gateway.simulators.unicom import UnicomDialect

SIMULATORS: Final[Mapping[str, Callable[[SimulatorParts], Dialect]]] = {
    "generic": GenericDialect,
    "unicom": UnicomDialect,
    "ctcc": CtccDialect,
    "onelink": OneLinkDialect,
}
