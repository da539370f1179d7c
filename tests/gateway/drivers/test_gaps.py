import pytest

from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.drivers.gaps import NoBatches, NoCardList, NoOperationQuery, NoSessionQuery
from junhong_cmp.gateway.errors import NotOffered

ACCOUNT = GatewayAccount(id=1, code="测试账号", driver="ctcc")
CARD = CardRef(1, "8986030000000000001")


class Lacking(NoBatches, NoCardList, NoOperationQuery, NoSessionQuery):
    pass


async def test_what_is_lacking_is_not_offered_and_says_so() -> None:
    driver = Lacking()
    for call in (
        driver.query_operation(ACCOUNT, CARD, "request"),
        driver.query_session(ACCOUNT, CARD),
        driver.list_cards(ACCOUNT, None),
        driver.query_usage_batch(ACCOUNT, [CARD]),
        driver.query_status_batch(ACCOUNT, [CARD]),
        driver.query_realname_batch(ACCOUNT, [CARD]),
    ):
        with pytest.raises(NotOffered, match=r"测试账号.*ctcc"):
            await call


async def test_a_batch_of_nobody_is_answered() -> None:
    driver = Lacking()
    assert await driver.query_usage_batch(ACCOUNT, []) == {}
    assert await driver.query_status_batch(ACCOUNT, []) == {}
    assert await driver.query_realname_batch(ACCOUNT, []) == {}
