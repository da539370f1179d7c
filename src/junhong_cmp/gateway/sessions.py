"""Whether a card is on the network just now."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """The card's data session at ``at``: its address and its beginning, as far as the carrier tells."""

    iccid: str
    online: bool
    ip: str | None
    since: datetime | None
    at: datetime
