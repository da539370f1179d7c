"""How the cards of a demonstration are numbered: faultless, and never the same for two accounts."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from junhong_cmp.cards.carrier import Carrier

_YEAR: Final = "26"
_BLOCKS: Final = 10_000
_LAST_SERIAL: Final = 10**7 - 1


class _Heads(NamedTuple):
    """How a carrier's numbers begin; without a ``msisdn`` head its cards are given out without numbers."""

    iccid: str
    msisdn: str
    imsi: str


_HEADS: Final[Mapping[Carrier, _Heads]] = {
    Carrier.CMCC: _Heads("898604", "10648", "46004"),
    Carrier.CUCC: _Heads("898606", "10646", "46006"),
    Carrier.CTCC: _Heads("898611", "", "46011"),  # its platform has numbers of its own for its cards
    Carrier.CBN: _Heads("898615", "10192", "46015"),
    Carrier.OTHER: _Heads("898699", "10640", "46099"),
}


@dataclass(frozen=True, slots=True)
class CardSeries:
    """A card series makes the numbers of one account's cards; every ``block`` has its own ten million."""

    carrier: Carrier = Carrier.CMCC
    block: int = 0

    @classmethod
    def named(cls, carrier: Carrier, name: str) -> "CardSeries":
        """Return the series of this name, the same on every machine."""
        return cls(carrier, 1 + zlib.crc32(name.encode()) % (_BLOCKS - 1))

    def iccid(self, serial: int) -> str:
        """Return a number of 20 digits, the last of which checks the others.

        Raises:
            ValueError: a block has no such serial number.

        """
        if not 0 <= serial <= _LAST_SERIAL:
            raise ValueError(f"no serial number {serial}")
        return with_check_digit(f"{_HEADS[self.carrier].iccid}{_YEAR}{self.block:04d}{serial:07d}")

    def msisdn(self, serial: int) -> str:
        """Return the phone number of a card, or an empty text where cards come without."""
        head = _HEADS[self.carrier].msisdn
        return f"{head}{self._tail(serial) % 10**8:08d}" if head else ""

    def imsi(self, serial: int) -> str:
        """Return the subscriber number of a card."""
        return f"{_HEADS[self.carrier].imsi}{self._tail(serial) % 10**10:010d}"

    def _tail(self, serial: int) -> int:
        return self.block * (_LAST_SERIAL + 1) + serial


def with_check_digit(body: str) -> str:
    """Append the Luhn digit to a number of 19 digits."""
    total = 0
    for position, digit in enumerate(reversed(body)):
        doubled = int(digit) * (2 - position % 2)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the digit sum of a doubled digit
    return f"{body}{-total % 10}"
