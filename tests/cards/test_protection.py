"""When a card is stopped or resumed by the rules."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.polling.samples import make_account, make_card

from junhong_cmp.cards.limits import CardLimits, PoolState
from junhong_cmp.cards.model import CardStatus, StopReason
from junhong_cmp.cards.protection import (
    IN_SERVICE,
    RETRY_AFTER,
    USAGE_REASONS,
    Decision,
    PastStop,
    ProtectionAction,
    ProtectionFacts,
    decide_protection,
)
from junhong_cmp.cards.usage import BillingTerms, CycleId

NOW = datetime(2026, 3, 10, 4, tzinfo=UTC)
CYCLE, BEFORE = CycleId("2026-03-01"), CycleId("2026-02-01")
OLD = datetime(2026, 2, 20, tzinfo=UTC)
NOTHING = Decision(ProtectionAction.NOTHING)
POLL_FIRST = Decision(ProtectionAction.POLL_FIRST)


def stop(reason: StopReason) -> Decision:
    return Decision(ProtectionAction.STOP, reason)


def decide(
    card: dict[str, Any], *, account: dict[str, Any] | None = None, now: datetime = NOW, **facts: Any
) -> Decision:
    fields = {"status": CardStatus.ACTIVE, "cycle": CYCLE} | card
    return decide_protection(
        ProtectionFacts(
            card=make_card(**fields),
            account=make_account(**({"protect_enabled": True} | (account or {}))),
            terms=BillingTerms(1, ZoneInfo("Asia/Shanghai")),
            **facts,
        ),
        now,
    )


def pool_of(used_kb: int, *, capacity_kb: int = 1000, threshold_kb: int | None = None) -> CardLimits:
    pool = PoolState(
        id=1,
        name="p",
        capacity_kb=capacity_kb,
        threshold_kb=threshold_kb,
        cycle=CYCLE,
        used_kb=used_kb,
    )
    return CardLimits(None, pool)


class TestStop:
    @pytest.mark.parametrize(
        ("card", "limits", "decision"),
        [
            ({"threshold_kb": 500, "cycle_used_kb": 500}, CardLimits(), stop(StopReason.THRESHOLD)),
            ({"threshold_kb": 500, "cycle_used_kb": 499}, CardLimits(), NOTHING),
            ({"threshold_kb": 0, "cycle_used_kb": 499}, CardLimits(), NOTHING),
            ({"cycle_used_kb": 500}, CardLimits(500), stop(StopReason.OVER_PLAN)),
            ({"cycle_used_kb": 499}, CardLimits(500), NOTHING),
            ({"threshold_kb": 9, "cycle_used_kb": 500}, CardLimits(500), stop(StopReason.THRESHOLD)),
            ({"cycle_used_kb": 1}, pool_of(1000), stop(StopReason.POOL)),
            ({"cycle_used_kb": 1}, pool_of(999), NOTHING),
            ({"cycle_used_kb": 1}, pool_of(800, threshold_kb=800), stop(StopReason.POOL)),
            ({"cycle_used_kb": 1}, pool_of(0, capacity_kb=0), NOTHING),
            ({"cycle_used_kb": 10**9}, CardLimits(), NOTHING),
        ],
    )
    def test_reaching_a_limit_stops(
        self, card: dict[str, Any], limits: CardLimits, decision: Decision
    ) -> None:
        assert decide(card, limits=limits) == decision

    def test_only_a_reading_of_the_current_cycle_counts(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 9000, "cycle": BEFORE}
        assert decide(card) == POLL_FIRST
        assert decide(card | {"cycle": None}) == POLL_FIRST
        assert decide({"cycle": None}) == NOTHING  # nothing it could exceed

    def test_a_late_carrier_is_not_asked_before_it_can_know(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 9000, "cycle": BEFORE}
        late = {"usage_lag": timedelta(days=2)}
        began = datetime(2026, 2, 28, 16, tzinfo=UTC)
        assert decide(card, account=late, now=began + timedelta(hours=47)) == NOTHING
        assert decide(card, account=late, now=began + timedelta(hours=48)) == POLL_FIRST

    def test_only_where_the_account_asks_for_it(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 500}
        assert decide(card, account={"protect_enabled": False}) == NOTHING

    @pytest.mark.parametrize("status", list(CardStatus))
    def test_only_cards_in_service(self, status: CardStatus) -> None:
        decision = decide({"threshold_kb": 500, "cycle_used_kb": 500, "status": status})
        assert (decision.action is ProtectionAction.STOP) is (status in IN_SERVICE)

    def test_once_a_cycle_whoever_resumes_it_by_hand_keeps_it_running(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 500}
        assert decide(card, last_stop=PastStop(StopReason.THRESHOLD, CYCLE, NOW)) == NOTHING
        assert decide(card, last_stop=PastStop(StopReason.OVER_PLAN, CYCLE, NOW)) == NOTHING
        for other in (
            PastStop(StopReason.THRESHOLD, BEFORE, OLD),
            PastStop(StopReason.MANUAL, CYCLE, NOW),
        ):
            assert decide(card, last_stop=other) == stop(StopReason.THRESHOLD)

    def test_what_failed_rests(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 500}
        assert decide(card, failed_at=NOW - RETRY_AFTER + timedelta(seconds=1)) == NOTHING
        assert decide(card, failed_at=NOW - RETRY_AFTER) == stop(StopReason.THRESHOLD)


class TestResume:
    @pytest.mark.parametrize("reason", list(StopReason))
    def test_a_new_cycle_resumes_what_was_stopped_for_usage_only(self, reason: StopReason) -> None:
        card = {"status": CardStatus.SUSPENDED, "stop_reason": reason, "status_changed_at": OLD}
        decision = decide(card, last_stop=PastStop(reason, BEFORE, OLD))
        expected = Decision(ProtectionAction.RESUME, reason) if reason in USAGE_REASONS else NOTHING
        assert decision == expected

    def test_not_within_the_cycle_of_the_stop(self) -> None:
        card = {"status": CardStatus.SUSPENDED, "stop_reason": StopReason.POOL, "status_changed_at": OLD}
        past = PastStop(StopReason.POOL, CYCLE, NOW)
        assert decide(card, last_stop=past, limits=pool_of(1000)) == NOTHING

    @pytest.mark.parametrize(
        ("reason", "card", "limits"),
        [
            (StopReason.THRESHOLD, {"threshold_kb": 501}, CardLimits()),
            (StopReason.THRESHOLD, {"threshold_kb": None}, CardLimits()),
            (StopReason.OVER_PLAN, {}, CardLimits(501)),
            (StopReason.POOL, {}, pool_of(999)),
        ],
    )
    def test_within_the_cycle_where_no_limit_is_exceeded_any_more(
        self, reason: StopReason, card: dict[str, Any], limits: CardLimits
    ) -> None:
        stopped = {"status": CardStatus.SUSPENDED, "stop_reason": reason, "cycle_used_kb": 500} | card
        past = PastStop(reason, CYCLE, NOW)
        raised = Decision(ProtectionAction.RESUME_RAISED, reason)
        assert decide(stopped, limits=limits, last_stop=past) == raised
        off = {"protect_enabled": False}
        assert decide(stopped, limits=limits, last_stop=past, account=off) == raised
        assert decide(stopped | {"threshold_kb": 500}, limits=limits, last_stop=past) == NOTHING
        assert decide(stopped, limits=limits) == NOTHING, "not our stop, as far as anybody knows"
        assert decide(stopped | {"stop_reason": StopReason.MANUAL}, limits=limits, last_stop=past) == NOTHING
        assert decide(stopped | {"cycle": BEFORE}, limits=limits, last_stop=past) == NOTHING

    def test_a_card_resumed_for_a_raised_limit_is_stopped_at_that(self) -> None:
        card = {"threshold_kb": 500, "cycle_used_kb": 500}
        lifted = PastStop(StopReason.THRESHOLD, CYCLE, NOW, lifted=True)
        assert decide(card, last_stop=lifted) == stop(StopReason.THRESHOLD)

    def test_without_a_record_the_change_of_state_tells(self) -> None:
        card = {"status": CardStatus.SUSPENDED, "stop_reason": StopReason.POOL}
        assert decide(card | {"status_changed_at": OLD}).action is ProtectionAction.RESUME
        assert decide(card | {"status_changed_at": NOW - timedelta(days=1)}) == NOTHING
        assert decide(card) == NOTHING

    def test_an_account_that_stops_no_more_still_resumes(self) -> None:
        card = {"status": CardStatus.SUSPENDED, "stop_reason": StopReason.POOL, "status_changed_at": OLD}
        assert decide(card, account={"protect_enabled": False}).action is ProtectionAction.RESUME

    def test_an_expired_card_stays_stopped_where_expiry_stops(self) -> None:
        card = {
            "status": CardStatus.SUSPENDED,
            "stop_reason": StopReason.POOL,
            "status_changed_at": OLD,
            "expires_at": OLD,
        }
        assert decide(card, account={"stop_on_expiry": True}) == NOTHING
        assert decide(card).action is ProtectionAction.RESUME


class TestExpiry:
    def test_an_expired_card_is_stopped_if_its_account_says_so(self) -> None:
        card = {"expires_at": NOW}
        on = {"stop_on_expiry": True, "protect_enabled": False}
        assert decide(card, account=on) == stop(StopReason.EXPIRED)
        assert decide(card) == NOTHING
        assert decide(card, account=on, now=NOW - timedelta(seconds=1)) == NOTHING

    def test_once_for_each_date_of_expiry(self) -> None:
        on = {"stop_on_expiry": True}
        stopped = PastStop(StopReason.EXPIRED, BEFORE, OLD)
        assert decide({"expires_at": OLD}, account=on, last_stop=stopped) == NOTHING
        assert decide({"expires_at": NOW}, account=on, last_stop=stopped) == stop(StopReason.EXPIRED)


@given(
    status=st.sampled_from(CardStatus),
    reason=st.sampled_from(StopReason),
    used=st.integers(0, 2000),
    threshold=st.one_of(st.none(), st.integers(0, 2000)),
    plan=st.one_of(st.none(), st.integers(1, 2000)),
    cycle=st.sampled_from([None, BEFORE, CYCLE]),
)
def test_never_stops_without_a_current_reading_nor_resumes_another_s_stop(
    status: CardStatus,
    reason: StopReason,
    used: int,
    threshold: int | None,
    plan: int | None,
    cycle: CycleId | None,
) -> None:
    card = {
        "status": status,
        "stop_reason": reason,
        "cycle_used_kb": used,
        "threshold_kb": threshold,
        "cycle": cycle,
        "status_changed_at": OLD,
    }
    decision = decide(card, limits=CardLimits(plan))
    if decision.action is ProtectionAction.STOP:
        assert cycle == CYCLE
        assert used >= min(limit for limit in (threshold, plan) if limit)
    if decision.action is ProtectionAction.RESUME:
        assert status is CardStatus.SUSPENDED
        assert reason in USAGE_REASONS
