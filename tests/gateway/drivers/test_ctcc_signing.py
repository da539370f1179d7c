import pytest

from junhong_cmp.gateway.drivers.ctcc_signing import access_of, signed_query
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential

# The platform's own published example: user and password "test", key "abcdefghi".
PUBLISHED = Credential("test", "testabcdefghi")
PUBLISHED_SIGN = (
    "45E8B9924DE397A8F7E5764767810CF774CC7E1685BA702C9C4C367EFDAE5D932B37C0C8F0F8EB0C"
    "AD6372289F407CA941894168BD86A2CC32E5804EA05BAA5099649468B9418E52"
)


def test_the_published_example_comes_out() -> None:
    query = signed_query(access_of(PUBLISHED), "queryPakage", {"access_number": "14914000000"})
    assert query == {
        "method": "queryPakage",
        "user_id": "test",
        "passWord": "41894168BD86A2CC",
        "sign": PUBLISHED_SIGN,
        "access_number": "14914000000",
    }


@pytest.mark.parametrize("unsigned", ["needDtl", "pageIndex"])
def test_some_parameters_are_not_signed(unsigned: str) -> None:
    query = signed_query(access_of(PUBLISHED), "queryPakage", {"access_number": "14914000000", unsigned: "1"})
    assert query["sign"] == PUBLISHED_SIGN
    assert query[unsigned] == "1"


def test_every_other_parameter_is_signed_an_empty_one_too() -> None:
    access = access_of(PUBLISHED)
    order = {"access_number": "14914000000", "acctCd": "", "orderTypeId": "19"}
    signs = {signed_query(access, "disabledNumber", {**order, name: "x"})["sign"] for name in order}
    signs.add(signed_query(access, "disabledNumber", order)["sign"])
    without = {name: value for name, value in order.items() if name != "acctCd"}
    signs.add(signed_query(access, "disabledNumber", without)["sign"])
    assert len(signs) == 5


@pytest.mark.parametrize("secret", ["a", "abcdefghi"])
def test_a_secret_without_a_password_is_not_one(secret: str) -> None:
    with pytest.raises(GatewayNotConfigured, match="密钥"):
        access_of(Credential("user", secret))


def test_no_secret_is_shown() -> None:
    assert "canary" not in repr(access_of(Credential("user", "canaryabcdefghi")))
