"""Which carriers a run of ``junhong up`` has, and what cannot be run."""

import pytest
import typer

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cli.up_carriers import LONE_CARRIER, choose_carriers, every_account_code
from junhong_cmp.gateway.drivers.table import DRIVERS


def test_without_a_wish_there_is_one_that_uses_the_gateways_own_credential() -> None:
    assert choose_carriers(None, None, None) == (LONE_CARRIER,)
    assert (LONE_CARRIER.code, LONE_CARRIER.credential_ref) == ("demo", None)
    assert LONE_CARRIER.process_name == "simulator"


def test_several_have_an_account_a_credential_and_a_process_each() -> None:
    carriers = choose_carriers(" OneLink, unicom，ctcc", "unicom", 3)
    assert [each.driver for each in carriers] == ["onelink", "unicom", "ctcc"]
    assert [each.carrier for each in carriers] == [Carrier.CMCC, Carrier.CUCC, Carrier.CTCC]
    assert [each.throttled for each in carriers] == [False, True, False]
    for names in (
        {each.code for each in carriers},
        {each.credential_ref for each in carriers},
        {each.process_name for each in carriers},
    ):
        assert len(names) == 3
    assert carriers[1].name == "演示账号（中国联通）"


def test_every_driver_can_be_run() -> None:
    carriers = choose_carriers(",".join(DRIVERS), None, None)
    assert set(every_account_code()) == {"demo", *(each.code for each in carriers)}


@pytest.mark.parametrize(
    ("carriers", "throttle", "cards", "option", "complaint"),
    [
        (
            "onelink,foo",
            None,
            None,
            "--carriers",
            "没有名为“foo”的驱动，可选：generic、onelink、unicom、ctcc",
        ),
        ("\x1b[31m" + "x" * 99, None, None, "--carriers", "“?" + r"\[31m" + "x" * 35 + "”"),
        ("unicom,Unicom", None, None, "--carriers", "unicom 出现了两次"),
        ("unicom,,ctcc", None, None, "--carriers", "写法须如 onelink,unicom,ctcc"),
        ("", None, None, "--carriers", "写法须如"),
        ("onelink,unicom,ctcc", None, 2, "--cards", "2 张卡不够分给 3 个账号"),
        (None, "unicom", None, "--throttle", "须与 --carriers 一起使用"),
        ("ctcc", "unicom", None, "--throttle", "unicom 不在 --carriers 之中"),
        ("ctcc", "foo", None, "--throttle", "没有名为“foo”的驱动"),
        ("ctcc", "ctcc,ctcc", None, "--throttle", "ctcc 出现了两次"),
    ],
)
def test_what_cannot_be_run_is_told(
    carriers: str | None, throttle: str | None, cards: int | None, option: str, complaint: str
) -> None:
    with pytest.raises(typer.BadParameter, match=complaint) as caught:
        choose_carriers(carriers, throttle, cards)
    assert caught.value.param_hint == option
