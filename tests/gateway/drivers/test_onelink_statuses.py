import pytest
from tests.gateway.onelink_carrier import ACCOUNT, after_token, answer, onelink_driver
from tests.gateway.scripted_server import scripted_server
from tests.waiting import FakeClock

from junhong_cmp.cards.model import CardStatus, RealNameStatus
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.onelink_statuses import CARD_STATUSES, NO_SUCH_NUMBER, REALNAME_STATUSES
from junhong_cmp.gateway.errors import CardUnknown

CARD = CardRef(1, "89860012345678900017")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("1", "ready"),
        ("2", "active"),
        ("4", "suspended"),
        ("6", "testing"),
        ("7", "inventory"),
        ("8", "pre_cancelled"),
        ("9", "cancelled"),
        ("00", "active"),
        ("01", "suspended"),
        ("02", "suspended"),
        ("03", "pre_cancelled"),
        ("04", "cancelled"),
        ("05", "unknown"),
        ("06", "unknown"),
        ("07", "ready"),
        ("3", "unknown"),
        ("08", "unknown"),
        ("欠费", "unknown"),
    ],
)
async def test_each_code_is_one_of_our_states_and_kept_beside_it(raw: str, status: str) -> None:
    async with (
        scripted_server(after_token([answer({"cardStatus": raw, "lastChangeDate": " "})])) as server,
        onelink_driver(server.url, FakeClock()) as driver,
    ):
        answered = await driver.query_status(ACCOUNT, CARD)
    assert (answered.raw, answered.status) == (raw, status)


@pytest.mark.parametrize(("raw", "status"), [("0", "unverified"), ("1", "verified"), ("2", "unknown")])
async def test_each_registration_code_is_one_of_our_words(raw: str, status: str) -> None:
    async with (
        scripted_server(after_token([answer({"realNameStatus": raw, "reason": " "})])) as server,
        onelink_driver(server.url, FakeClock()) as driver,
    ):
        assert (await driver.query_realname(ACCOUNT, CARD)).status == status


async def test_a_number_that_does_not_exist_is_an_unknown_card() -> None:
    async with (
        scripted_server(after_token([answer({"cardStatus": NO_SUCH_NUMBER})])) as server,
        onelink_driver(server.url, FakeClock()) as driver,
    ):
        with pytest.raises(CardUnknown):
            await driver.query_status(ACCOUNT, CARD)


def test_our_words_are_those_of_the_cards() -> None:
    assert set(CARD_STATUSES.values()) <= set(CardStatus)
    assert set(REALNAME_STATUSES.values()) <= set(RealNameStatus)
