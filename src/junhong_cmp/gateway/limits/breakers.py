"""A breaker for each account, told how every call ended."""

from typing import Final

import structlog

from junhong_cmp.clock import Clock
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import (
    AccountPausing,
    AlreadyDone,
    BadRequest,
    BadResponse,
    BreakerOpen,
    CardUnknown,
    Transient,
)
from junhong_cmp.gateway.limits.breaker import (
    Breaker,
    BreakerSettings,
    BreakerState,
    CallVerdict,
    Pass,
)

log = structlog.stdlib.get_logger(__name__)

_FAILURES: Final = (Transient, BadResponse)
_ANSWERS: Final = (AlreadyDone, BadRequest, CardUnknown)


class AccountBreakers:
    """Account breakers stand before every call: open ones refuse it before anything is sent.

    One log line tells each opening, the first probe after it, and the closing, however many calls and
    probes there are in between.
    """

    def __init__(self, settings: BreakerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._breakers: dict[int, Breaker] = {}

    def ask(self, account: GatewayAccount) -> Pass:
        """Return leave for one call; it is to be settled when the call has ended.

        Raises:
            BreakerOpen: the account's calls have failed too often; its pause is the time to the next probe.

        """
        breaker = self._breakers.get(account.id)
        if breaker is None:
            breaker = self._breakers[account.id] = Breaker(self._settings)
        leave = breaker.ask(self._clock.monotonic())
        if not isinstance(leave, Pass):
            raise BreakerOpen("网关熔断中，暂不调用", leave)
        if leave.probe and not breaker.failed_probes:
            log.info("网关熔断半开", account=account.code, driver=account.driver)
        return leave

    def state_of(self, account: GatewayAccount) -> BreakerState:
        """Return the state of an account's breaker."""
        breaker = self._breakers.get(account.id)
        return BreakerState.CLOSED if breaker is None else breaker.state

    def settle(self, account: GatewayAccount, leave: Pass, error: BaseException | None) -> None:
        """Learn from how a call ended."""
        breaker = self._breakers[account.id]
        verdict = CallVerdict.WORKED if error is None else _verdict_of(error, probe=leave.probe)
        before, now_s = breaker.state, self._clock.monotonic()
        breaker.settle(leave, verdict, now_s)
        match before, breaker.state:
            case BreakerState.CLOSED, BreakerState.OPEN:
                log.warning(
                    "网关熔断开启",
                    account=account.code,
                    driver=account.driver,
                    failure_rate=round(breaker.rate.rate, 2),
                    calls=breaker.rate.calls,
                )
            case BreakerState.HALF_OPEN, BreakerState.CLOSED:
                open_s = round(breaker.open_for(now_s).total_seconds(), 1)
                log.info("网关熔断关闭", account=account.code, driver=account.driver, open_s=open_s)
            case _:
                pass  # nothing changed, or a probe ended like the one before it


def _verdict_of(error: BaseException, *, probe: bool) -> CallVerdict:
    """Judge an error; a refusal of the account proves that the carrier works, but not that calls succeed."""
    if isinstance(error, _FAILURES):
        return CallVerdict.FAILED
    if isinstance(error, _ANSWERS) or (probe and isinstance(error, AccountPausing)):
        return CallVerdict.WORKED
    return CallVerdict.NOTHING
