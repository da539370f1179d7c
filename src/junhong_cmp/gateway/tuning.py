"""How patient the gateway is: with calls, with accounts, with cards."""

from dataclasses import dataclass, field
from datetime import timedelta

from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.gateway.limits.breaker import BreakerSettings
from junhong_cmp.gateway.limits.change_gap import ChangeGap, NoChangeGap
from junhong_cmp.gateway.transport import GatewayTimeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTuning:
    """Time limits of every call, and the limits around them.

    ``patience`` is the wait for a free slot. ``clock`` is what carriers' times are held against, and what
    requests are signed and dated by.
    """

    timeouts: GatewayTimeouts = field(default_factory=GatewayTimeouts)
    patience: timedelta = timedelta(seconds=3)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    change_gap: ChangeGap = field(default_factory=NoChangeGap)
    clock: Clock = field(default_factory=SystemClock)
