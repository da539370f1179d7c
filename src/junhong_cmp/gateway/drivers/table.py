"""The drivers there are: a row for each carrier interface."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import GatewayAccount, GatewayCall, GatewayCalls
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.ctcc import CtccDriver
from junhong_cmp.gateway.drivers.generic import GenericDriver
from junhong_cmp.gateway.drivers.generic_batch import MAX_BATCH as GENERIC_BATCH
from junhong_cmp.gateway.drivers.onelink import OneLinkDriver
from junhong_cmp.gateway.drivers.onelink_batch import MAX_BATCH as ONELINK_BATCH
from junhong_cmp.gateway.drivers.onelink_refusals import CHANGE_REST as ONELINK_REST
from junhong_cmp.gateway.drivers.unicom import MAX_BATCH as UNICOM_BATCH
from junhong_cmp.gateway.drivers.unicom import UnicomDriver
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import HttpTransport


@dataclass(frozen=True, slots=True)
class DriverParts:
    """What drivers are made of; ``tokens`` is closed by the gateway that owns them."""

    transport: HttpTransport
    directory: Directory
    clock: Clock
    tokens: TokenStore


@dataclass(frozen=True, slots=True)
class DriverDefaults:
    """What an account of the driver has unless it says otherwise, and what the carrier demands of all.

    ``batch_sizes`` are the largest batches it takes, ``change_rest`` its least time between two changes of
    one card. ``batch_usage_ends`` is to when usage asked about in batches counts, where that is not now.
    """

    billing_day: int = 1
    usage_unit: str = "KB"
    batch_sizes: Mapping[GatewayCall, int] = field(default_factory=dict)
    change_rest: timedelta = timedelta(0)
    batch_usage_ends: str | None = None


@dataclass(frozen=True, slots=True)
class DriverRow:
    """A driver: its ``name`` in an account's row, the carrier it is usually for, and how it is made."""

    name: str
    carrier: str
    open: Callable[[DriverParts], GatewayCalls]
    defaults: DriverDefaults


def _generic(parts: DriverParts) -> GatewayCalls:
    return GenericDriver(parts.transport, parts.directory, parts.clock)


def _onelink(parts: DriverParts) -> GatewayCalls:
    return OneLinkDriver(parts.transport, parts.directory, parts.clock, parts.tokens)


def _unicom(parts: DriverParts) -> GatewayCalls:
    return UnicomDriver(parts.transport, parts.directory, parts.clock)


def _ctcc(parts: DriverParts) -> GatewayCalls:
    return CtccDriver(parts.transport, parts.directory, parts.clock)


_ROWS: Final = (
    DriverRow(
        name="generic",
        carrier="other",
        open=_generic,
        defaults=DriverDefaults(batch_sizes=dict.fromkeys(GatewayCall, GENERIC_BATCH)),
    ),
    DriverRow(
        name="onelink",
        carrier="cmcc",
        open=_onelink,
        defaults=DriverDefaults(
            batch_sizes={GatewayCall.USAGE: ONELINK_BATCH},
            change_rest=ONELINK_REST,
            batch_usage_ends="昨日 24 时",
        ),
    ),
    DriverRow(
        name="unicom",
        carrier="cucc",
        open=_unicom,
        defaults=DriverDefaults(
            billing_day=27, usage_unit="MB", batch_sizes=dict.fromkeys(GatewayCall, UNICOM_BATCH)
        ),
    ),
    DriverRow(
        name="ctcc",
        carrier="ctcc",
        open=_ctcc,
        defaults=DriverDefaults(usage_unit="MB"),
    ),
)

DRIVERS: Final[Mapping[str, DriverRow]] = {row.name: row for row in _ROWS}


def batch_size_of(account: GatewayAccount, call: GatewayCall) -> int:
    """Return the most cards of the account one such call may ask about; 1 means single calls only."""
    row = DRIVERS.get(account.driver)
    offered = 1 if row is None else row.defaults.batch_sizes.get(call, 1)
    return max(1, min(account.batch_size, offered))


def change_rest_of(account: GatewayAccount) -> timedelta:
    """Return how long a card of the account rests between two changes: the longer of what both demand."""
    row = DRIVERS.get(account.driver)
    return account.change_rest if row is None else max(account.change_rest, row.defaults.change_rest)
