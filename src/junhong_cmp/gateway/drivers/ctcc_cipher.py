"""The cipher of China Telecom's platform: DES three times over UTF-16, with a key schedule of its own.

Text and keys are cut into blocks of four UTF-16 characters, the last one filled with zero bits; every block
is enciphered on its own, once with each third of the nine-character key, and written as upper-case
hexadecimal. The rounds are those of DES. The key's second half, however, is read in another order
than FIPS 46-3 says, so that an ordinary library gives another result. That order only moves bits of the key
about: here the key is rearranged first, and an ordinary DES then does the platform's.

This protects nothing: equal blocks look equal and 56 bits are few. It is what the platform asks for.
"""

from typing import Final

from Crypto.Cipher import DES

KEY_CHARS: Final = 9

_BLOCK_BYTES: Final = 8
_BYTE_BITS: Final = 8
_THIRD: Final = KEY_CHARS // 3


def _columns(columns: range, rows: range) -> tuple[int, ...]:
    return tuple(_BYTE_BITS * row + column for column in columns for row in rows)


_UPWARDS: Final = range(7, -1, -1)
_STANDARD_ORDER: Final = (
    *_columns(range(3), _UPWARDS),
    *_columns(range(3, 4), range(7, 3, -1)),
    *_columns(range(6, 3, -1), _UPWARDS),
    *_columns(range(3, 4), range(3, -1, -1)),
)
"""The key bits a standard DES takes, in its order (permuted choice 1), counted from 0."""
_PLATFORM_ORDER: Final = _columns(range(7), _UPWARDS)
"""The key bits the platform takes, in its order: column by column to the end."""


class CtccCipher:
    """A CTCC cipher writes texts as the platform reads them, with one nine-character key."""

    def __init__(self, key: str) -> None:
        if len(key) != KEY_CHARS:
            raise ValueError(f"the key has {KEY_CHARS} characters")
        thirds = (key[at : at + _THIRD] for at in range(0, KEY_CHARS, _THIRD))
        keys = (_rearranged(_blocks(third)) for third in thirds)
        self._rounds = tuple(DES.new(key, DES.MODE_ECB) for key in keys)  # noqa: S304 - the platform's choice

    def encrypt(self, text: str) -> str:
        """Return a text enciphered, in upper-case hexadecimal."""
        data = _blocks(text)
        for cipher in self._rounds:
            data = cipher.encrypt(data)
        return data.hex().upper()


def _blocks(text: str) -> bytes:
    data = text.encode("utf-16-be")
    return data + bytes(-len(data) % _BLOCK_BYTES)


def _rearranged(key: bytes) -> bytes:
    """Return the key from which a standard DES takes the bits that the platform takes from ``key``."""
    given = int.from_bytes(key, "big")
    highest = _BLOCK_BYTES * _BYTE_BITS - 1
    wanted = 0
    for standard, platform in zip(_STANDARD_ORDER, _PLATFORM_ORDER, strict=True):
        wanted |= (given >> (highest - platform) & 1) << (highest - standard)
    return wanted.to_bytes(_BLOCK_BYTES, "big")
