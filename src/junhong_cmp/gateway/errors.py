"""What a caller does after a gateway call that brought no answer.

::

    GatewayError
    ├── GatewayNotConfigured   the card goes back a little later, no failure; the operator acts
    ├── AccountPausing         the account pauses for ``pause``; no card failure
    │   ├── Throttled          too many calls, by the carrier's word
    │   │   └── Saturated      too many calls in flight, by our own limit
    │   ├── QuotaExhausted     the day's or month's budget is used up
    │   ├── AuthRejected       one side does not accept the other's credentials
    │   ├── Maintenance        the carrier is closed for a while
    │   └── BreakerOpen        calls have failed too often; nothing was sent
    ├── NotOffered             the carrier's interface has no such call; no card failure
    ├── CardResting            the card was changed too recently; again after ``wait``, no failure
    ├── CardUnknown            counted; after several times the card takes the slow lane for orphans
    ├── AlreadyDone            success: the card was in the wanted state before
    ├── BadRequest             dead letter and alert: sending the same again cannot help
    ├── Transient              card back-off; ``maybe_executed`` tells whether the carrier may have acted
    └── BadResponse            card back-off; the answer was not one, nothing of it was used
        └── WrongCard          the answer was about another card

No error text carries a secret, a whole card number or more of an answer than a
short, cleaned excerpt.
"""
# ruff: noqa: N818 -- the names say what to do, as the callers' except clauses read them

from datetime import timedelta
from typing import Final

from junhong_cmp.errors import JunhongError

SATURATED_PAUSE: Final = timedelta(seconds=1)
"""Pause after the carrier, or our own limit, said "too fast" without saying for how long."""


class GatewayError(JunhongError):
    """Root of everything a gateway call raises; ``reason`` is one stable word for metrics and groups."""

    reason: str = "gateway"


class GatewayNotConfigured(GatewayError):
    """The account cannot be asked: its address, driver or credential is missing or not allowed."""

    reason = "not_configured"


class NotOffered(GatewayError):
    """The carrier's interface has no such call; nothing was sent, and no card has done anything wrong."""

    reason = "not_offered"


class AccountPausing(GatewayError):
    """The whole account is to rest for ``pause``; the card asked about has done nothing wrong."""

    reason = "account_paused"
    default_pause: timedelta = timedelta(minutes=1)

    def __init__(self, text: str, pause: timedelta | None = None) -> None:
        self.pause = self.default_pause if pause is None else pause
        super().__init__(text)


class Throttled(AccountPausing):
    """Too many calls; ``pause`` is the carrier's Retry-After, capped."""

    reason = "throttled"
    default_pause = SATURATED_PAUSE


class Saturated(Throttled):
    """Too many calls in flight at once, by our own limit; nothing was sent, the carrier refused nothing."""


class QuotaExhausted(AccountPausing):
    """The account's budget of calls is used up."""

    reason = "quota_exhausted"
    default_pause = timedelta(hours=1)


class AuthRejected(AccountPausing):
    """The carrier refused our credentials, or its certificate is not one we accept."""

    reason = "auth"
    default_pause = timedelta(minutes=10)


class Maintenance(AccountPausing):
    """The carrier says it is closed for a while."""

    reason = "maintenance"
    default_pause = timedelta(minutes=5)


class BreakerOpen(AccountPausing):
    """The account's breaker is open: ``pause`` is the time until a probe finds out whether it works again."""

    reason = "breaker_open"
    default_pause = timedelta(seconds=5)


class CardResting(GatewayError):
    """The card may be changed again only after ``wait``; nothing was sent."""

    reason = "card_resting"

    def __init__(self, text: str, wait: timedelta) -> None:
        self.wait = wait
        super().__init__(text)


class CardUnknown(GatewayError):
    """The carrier does not know the card."""

    reason = "card_unknown"


class AlreadyDone(GatewayError):
    """The card was in the wanted state before the call; treat it as success."""

    reason = "already_done"


class BadRequest(GatewayError):
    """The carrier says our request is wrong."""

    reason = "bad_request"


class Transient(GatewayError):
    """The call failed in a way that passes; ``maybe_executed`` is False only if nothing was ever sent."""

    reason = "transient"

    def __init__(self, text: str, *, maybe_executed: bool = True) -> None:
        self.maybe_executed = maybe_executed
        super().__init__(text)


class BadResponse(GatewayError):
    """What came back is not an answer to what was asked."""

    reason = "bad_response"


class WrongCard(BadResponse):
    """The answer is about another card than the one asked for; it was refused and logged."""

    reason = "wrong_card"
