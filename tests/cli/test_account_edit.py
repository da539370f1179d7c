from datetime import timedelta

import pytest

from junhong_cmp.cards.account_store import NewAccount
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cli.account_edit import changed, differences, hints, with_defaults
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.polling.rule_editor import RuleRefusedError

ACCOUNT = NewAccount(code="demo", carrier=Carrier.CMCC, name="移动一号", batch_size=100)


def refusals(*texts: str, account: NewAccount = ACCOUNT) -> list[str]:
    with pytest.raises(RuleRefusedError) as caught:
        changed(account, texts)
    return [line.strip() for line in str(caught.value).splitlines() if line.strip()]


def test_what_is_not_named_stays() -> None:
    new = changed(ACCOUNT, ["qps=2.5", "daily_quota=1000", "operation_min_gap_s= 240", "protect_enabled=on"])
    assert (new.qps, new.daily_quota, new.operation_min_gap) == (2.5, 1000, timedelta(minutes=4))
    assert [tuple(each) for each in differences(ACCOUNT, new)] == [
        ("qps", "50", "2.5"),
        ("daily_quota", "none", "1000"),
        ("operation_min_gap_s", "180", "240"),
        ("protect_enabled", "false", "true"),
    ]
    assert changed(new, ["daily_quota=none"]).daily_quota is None
    assert differences(ACCOUNT, ACCOUNT) == []


def test_every_fault_is_named_at_once() -> None:
    assert refusals(
        "qps=0", "billing_day=32", "protect_enabeld=true", "colour=red", "tz", "name=a", "name=b"
    ) == [
        "qps=0：须为 0.001 到 1000000 的数",
        "billing_day=32：须为 1 到 31 的整数",
        "没有键 protect_enabeld，是否应为 protect_enabled",
        refusals("colour=red")[0],
        "tz：须写作 键=值",
        "name 给出了不止一次",
    ]
    assert refusals("colour=red")[0].startswith("没有键 colour，可用：name、carrier、driver")
    assert refusals("Daily-Quota=5") == ["没有键 Daily-Quota，是否应为 daily_quota"]


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    said = "".join(refusals("base_url=https://user:hunter2@gateway", "credential_ref=hunter2 hunter2"))
    assert "hunter2" not in said
    assert "base_url：须为" in said


def test_long_and_odd_words_are_cut() -> None:
    (said,) = refusals(f"usage_unit={'x' * 500}\x1b[2J")
    assert len(said) < 100
    assert "\x1b" not in refusals("\x1b[2J=1")[0]


def test_the_driver_has_its_say() -> None:
    assert refusals("driver=ctcc") == ["batch_size=100：驱动 ctcc 没有批量接口，须为 1"]
    assert refusals("driver=onelink", "operation_min_gap_s=60", "qps=0") == [
        "qps=0：须为 0.001 到 1000000 的数",
        "operation_min_gap_s=60：驱动 onelink 要求不小于 180（秒）",
    ]
    assert refusals("batch_size=101") == ["batch_size=101：驱动 generic 须为 1 到 100 的整数"]
    assert changed(ACCOUNT, ["driver=ctcc", "batch_size=1"]).driver == "ctcc"


def test_an_account_of_a_driver_nobody_knows_can_still_be_switched_off() -> None:
    strange = NewAccount(code="x", carrier=Carrier.OTHER, driver="pigeon")
    new = changed(strange, ["polling_enabled=false"])
    assert not new.polling_enabled
    assert hints(new, ["polling_enabled"]) == []


@pytest.mark.parametrize("name", DRIVERS)
def test_every_drivers_defaults_are_accepted(name: str) -> None:
    account = with_defaults("x", DRIVERS[name])
    texts = [f"{each.key}={each.new}" for each in differences(None, account) if each.key != "name"]
    assert changed(account, texts) == account
    assert hints(account, ["billing_day", "usage_unit", "daily_quota"]) == []
    assert account.operation_min_gap >= timedelta(minutes=3)


def test_batches_that_are_a_day_behind_are_told_of_with_the_remedy() -> None:
    account = with_defaults("x", DRIVERS["onelink"])
    told = ["驱动 onelink 批量查询的用量只到昨日 24 时，需要及时停机或告警的账号请设 batch_size=1"]
    assert hints(account, [each.key for each in differences(None, account)]) == told
    assert hints(account, ["driver"]) == hints(account, ["batch_size"]) == told
    assert hints(account, ["qps"]) == hints(account, ["protect_enabled"]) == []
    assert hints(changed(account, ["protect_enabled=true"]), ["protect_enabled"]) == told
    assert hints(changed(account, ["batch_size=1"]), ["batch_size", "driver"]) == []


def test_hints_speak_of_what_has_changed() -> None:
    new = changed(
        ACCOUNT, ["driver=unicom", "batch_size=50", "base_url=https://gw.example/api", "daily_quota=0"]
    )
    assert hints(new, ["qps"]) == []
    said = hints(new, ["driver", "base_url", "daily_quota"])
    assert said[0].startswith("主机 gw.example 须在每个 Worker 的 JUNHONG_GATEWAY_ALLOWED_HOSTS")
    assert "驱动 unicom 通常为 billing_day=27，现为 1" in said
    assert "驱动 unicom 通常为 usage_unit=MB，现为 KB" in said
    assert "daily_quota 为 0：该账号不会被调用" in said
    assert "JUNHONG_GATEWAY_CREDENTIALS" in hints(changed(new, ["credential_ref=a"]), ["credential_ref"])[0]
