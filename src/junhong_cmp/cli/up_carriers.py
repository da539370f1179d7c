"""The carriers of a run of ``junhong up``: one alone, or several side by side, each with its own account."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import typer

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier
from junhong_cmp.gateway.drivers.table import DRIVERS

_OPTION: Final = "--carriers"
_THROTTLE_OPTION: Final = "--throttle"
_SHOWN_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCarrier:
    """A demo carrier is a driver with an account; it needs a credential of its own beside others.

    A ``throttled`` one refuses nearly every call as coming too fast.
    """

    driver: str
    carrier: Carrier
    alone: bool = False
    throttled: bool = False

    @property
    def code(self) -> str:
        """The code of its account."""
        return "demo" if self.alone else f"demo-{self.driver}"

    @property
    def name(self) -> str:
        """The name of its account."""
        return "演示账号" if self.alone else f"演示账号（{CARRIER_NAMES[self.carrier]}）"

    @property
    def credential_ref(self) -> str | None:
        """What its account calls its credential; one that is alone uses the gateway's own."""
        return None if self.alone else self.code

    @property
    def process_name(self) -> str:
        """What its simulator's process is called."""
        return "simulator" if self.alone else f"simulator-{self.driver}"


LONE_CARRIER: Final = DemoCarrier(driver="generic", carrier=Carrier.CMCC, alone=True)


def every_account_code() -> list[str]:
    """Return the codes of all accounts that runs may have made."""
    return [LONE_CARRIER.code, *(carrier.code for carrier in _beside_others(list(DRIVERS), ()))]


def choose_carriers(named: str | None, throttled: str | None, cards: int | None) -> tuple[DemoCarrier, ...]:
    """Return the carriers to be run: those ``named``, or the one that is run without being asked for.

    Raises:
        typer.BadParameter: a driver is unknown, named twice or throttled without being run, or there are
            fewer cards than carriers.

    """
    if named is None:
        if throttled is not None:
            raise typer.BadParameter("须与 --carriers 一起使用", param_hint=_THROTTLE_OPTION)
        return (LONE_CARRIER,)
    drivers = _drivers(named, _OPTION)
    slow = [] if throttled is None else _drivers(throttled, _THROTTLE_OPTION)
    if strangers := [driver for driver in slow if driver not in drivers]:
        raise typer.BadParameter(f"{'、'.join(strangers)} 不在 --carriers 之中", param_hint=_THROTTLE_OPTION)
    if cards is not None and cards < len(drivers):
        raise typer.BadParameter(
            f"{cards} 张卡不够分给 {len(drivers)} 个账号，每个账号至少一张", param_hint="--cards"
        )
    return _beside_others(drivers, slow)


def _beside_others(drivers: Sequence[str], throttled: Sequence[str]) -> tuple[DemoCarrier, ...]:
    return tuple(
        DemoCarrier(driver=name, carrier=Carrier(DRIVERS[name].carrier), throttled=name in throttled)
        for name in drivers
    )


def _drivers(text: str, option: str) -> list[str]:
    """Read names of drivers, separated by commas, Chinese ones too."""
    names = [part.strip().lower() for part in text.replace("，", ",").split(",")]
    if not all(names):
        raise typer.BadParameter("写法须如 onelink,unicom,ctcc", param_hint=option)
    known = "、".join(DRIVERS)
    for name in names:
        if name not in DRIVERS:
            shown = "".join(char if char.isprintable() else "?" for char in name[:_SHOWN_CHARS])
            raise typer.BadParameter(f"没有名为“{shown}”的驱动，可选：{known}", param_hint=option)
        if names.count(name) > 1:
            raise typer.BadParameter(f"{name} 出现了两次", param_hint=option)
    return names
