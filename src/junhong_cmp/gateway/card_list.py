"""The cards a carrier says an account has, page by page."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedCard:
    """A card on a carrier's list: ``raw_status`` in its words, ``status`` in ours or ``unknown``."""

    iccid: str
    msisdn: str | None
    raw_status: str | None
    status: str


@dataclass(frozen=True, slots=True)
class CardPage:
    """A page of an account's cards; ``next_cursor`` asks for the next one and is None on the last."""

    cards: Sequence[ListedCard]
    next_cursor: str | None
