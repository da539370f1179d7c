from datetime import UTC, datetime, timedelta

import pytest
from tests.polling.samples import make_account, make_card

from junhong_cmp.cards.model import PollProgress, RealNameStatus
from junhong_cmp.polling.config import PollingConfigRule, PollingConfigSnapshot
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.eligibility import ORPHAN_INTERVAL, VERIFIED_RECHECK, first_due_of, poll_rule
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

HOURLY = PollRule(timedelta(hours=1), 0.1)
RULE = PollingConfigRule(id=1, name="", priority=1, intervals=dict.fromkeys(POLLING_TASK_TYPES, HOURLY))
SNAPSHOT = PollingConfigSnapshot(1, (RULE,), {7: make_account()})
CARDDATA, REALNAME = TaskType.POLLING_CARDDATA, TaskType.POLLING_REALNAME
NOW_MS = 1_700_000_000_000


def test_a_plain_card_follows_the_rule() -> None:
    assert poll_rule(make_card(), CARDDATA, SNAPSHOT) == HOURLY


@pytest.mark.parametrize("changes", [{"polling_enabled": False}, {"account_id": 99}])
def test_a_card_switched_off_or_of_no_account_is_not_polled(changes: dict[str, object]) -> None:
    assert poll_rule(make_card(**changes), CARDDATA, SNAPSHOT) is None


def test_a_real_name_is_asked_for_only_where_required_and_seldom_once_verified() -> None:
    assert poll_rule(make_card(), REALNAME, SNAPSHOT) is None
    assert poll_rule(make_card(real_name_required=True), REALNAME, SNAPSHOT) == HOURLY
    verified = make_card(real_name_required=True, real_name_status=RealNameStatus.VERIFIED)
    assert poll_rule(verified, REALNAME, SNAPSHOT) == PollRule(VERIFIED_RECHECK, 0.1)
    assert poll_rule(verified, CARDDATA, SNAPSHOT) == HOURLY


def test_an_orphan_takes_the_slow_lane() -> None:
    assert poll_rule(make_card(orphan=True), CARDDATA, SNAPSHOT) == PollRule(ORPHAN_INTERVAL, 0.1)


def test_a_failing_card_keeps_its_back_off_over_a_restart() -> None:
    at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    failing = make_card(carddata=PollProgress(attempted_at=at, fail_count=3))
    healthy = make_card(carddata=PollProgress(attempted_at=at, succeeded_at=at))
    settings = PollingSettings()
    later = first_due_of(failing, CARDDATA, HOURLY, NOW_MS + 10 * 3_600_000, settings)
    sooner = first_due_of(healthy, CARDDATA, HOURLY, NOW_MS + 10 * 3_600_000, settings)
    assert later - sooner == 3 * 3_600_000


def test_a_card_never_polled_is_due_within_one_interval() -> None:
    due = first_due_of(make_card(), CARDDATA, HOURLY, NOW_MS, PollingSettings())
    assert NOW_MS < due <= NOW_MS + 3_600_000
