import pytest

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential

DEFAULT = Credential("default", "d" * 16)
SPECIAL = Credential("special", "s" * 16)


def directory(default: Credential | None = DEFAULT) -> Directory:
    policy = EndpointPolicy(allow_http=False, allowed_hosts={"gw.example.com", "other.example.com"})
    return Directory(
        policy,
        base_url="https://gw.example.com/api/",
        credentials={"cmcc": SPECIAL},
        default_credential=default,
    )


def test_an_account_without_an_own_route_takes_the_defaults() -> None:
    route = directory().route_of(GatewayAccount(1, "a"))
    assert route.credential is DEFAULT
    assert str(route.endpoint("/v1/usage/query")) == "https://gw.example.com/api/v1/usage/query"


def test_an_account_may_have_its_own_address_and_key() -> None:
    account = GatewayAccount(1, "a", base_url="https://other.example.com", credential_ref="cmcc")
    route = directory().route_of(account)
    assert route.credential is SPECIAL
    assert str(route.endpoint("/v1/cards/stop")) == "https://other.example.com/v1/cards/stop"


def test_an_address_from_the_database_is_checked_too() -> None:
    with pytest.raises(GatewayNotConfigured, match="允许名单"):
        directory().route_of(GatewayAccount(1, "a", base_url="https://evil.example.com"))


@pytest.mark.parametrize(("ref", "default"), [("missing", DEFAULT), (None, None)])
def test_a_missing_key_is_named_by_its_account(ref: str | None, default: Credential | None) -> None:
    with pytest.raises(GatewayNotConfigured, match="账号 cucc-2 的网关密钥未配置"):
        directory(default).route_of(GatewayAccount(1, "cucc-2", credential_ref=ref))
