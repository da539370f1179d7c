"""How many calls to an account's carrier the leader may have made now."""

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling.account_load import AccountLoad


class AccountPacer:
    """A pacer accumulates a token for each call the account's rate now allows, a second's worth at most."""

    def __init__(self, qps: float, now: float) -> None:
        self._qps = qps
        self._tokens = max(1.0, qps * 0.1)
        self._at = now

    def allowance(self, account: CarrierAccount, now: float, load: AccountLoad) -> int:
        """Return how many calls may be handed out, by rate and by what is in flight already.

        Twice the concurrency may be on its way: that many keep the consumers supplied, while a
        slow carrier's cards cannot fill the task queue before everybody else's.
        """
        self._qps = load.qps
        self._tokens = min(self._tokens + (now - self._at) * self._qps, max(1.0, self._qps))
        self._at = now
        room = account.concurrency * 2 - load.in_flight if load.in_flight < account.concurrency else 0
        return max(0, min(int(self._tokens), room))

    def spend(self, calls: int) -> None:
        """Take the tokens of calls handed out; what exceeds them is owed, and waited for."""
        self._tokens -= calls

    def seconds_to_next(self) -> float:
        """Return how long it takes until a token is there."""
        return max(0.0, (1 - self._tokens) / self._qps)
