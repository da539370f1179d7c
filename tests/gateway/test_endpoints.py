import pytest
from tests.gateway.scripted_resolver import ScriptedResolver

from junhong_cmp.gateway.endpoints import (
    EndpointPolicy,
    ForbiddenAddressError,
    GuardedResolver,
    is_forbidden_address,
)
from junhong_cmp.gateway.errors import GatewayNotConfigured

HOSTS = {"gw.example.com", "127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254", "Upper.example.com"}


def policy(*, allow_http: bool = False) -> EndpointPolicy:
    return EndpointPolicy(allow_http=allow_http, allowed_hosts=HOSTS)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://gw.example.com", "https://gw.example.com"),
        ("https://gw.example.com/api/", "https://gw.example.com/api"),
        ("https://GW.example.com:8443/a/b", "https://gw.example.com:8443/a/b"),
        ("https://upper.example.com", "https://upper.example.com"),
    ],
)
def test_an_allowed_address_passes(url: str, expected: str) -> None:
    assert str(policy().check(url)).rstrip("/") == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://gw.example.com", "https"),
        ("ftp://gw.example.com", "https"),
        ("gw.example.com", "https"),
        ("", "https"),
        ("https://evil.example.com", "允许名单"),
        ("https://gw.example.com.evil.com", "允许名单"),
        ("https:///path", "URL|允许名单"),
        ("https://user:canary@gw.example.com", "不得包含"),
        ("https://gw.example.com@evil.example.com", "允许名单"),
        ("https://gw.example.com/?a=1", "不得包含"),
        ("https://gw.example.com/#f", "不得包含"),
        ("https://gw.example.com:99999", "URL"),
        ("https://[::1", "URL"),
        ("https://169.254.169.254/latest", "不允许的网络地址"),
        ("https://[::ffff:169.254.169.254]/", "不允许的网络地址|允许名单"),
    ],
)
def test_any_other_address_is_refused_with_its_reason(url: str, reason: str) -> None:
    with pytest.raises(GatewayNotConfigured, match=reason) as caught:
        policy().check(url)
    assert "canary" not in str(caught.value)


def test_plain_http_needs_to_be_allowed() -> None:
    assert policy(allow_http=True).check("http://127.0.0.1:8080").port == 8080


@pytest.mark.parametrize(
    ("host", "forbidden"),
    [
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.1.1", True),
        ("100.100.100.200", True),
        ("fd00:ec2::254", True),
        ("0.0.0.0", True),  # noqa: S104 - an address under test, nothing listens on it
        ("224.0.0.1", True),
        ("10.0.0.1", False),
        ("127.0.0.1", False),
        ("8.8.8.8", False),
        ("gw.example.com", False),
    ],
)
def test_metadata_and_link_local_addresses_are_forbidden(host: str, forbidden: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_forbidden_address(host) is forbidden


async def test_a_name_that_leads_to_a_forbidden_address_is_refused() -> None:
    inner = ScriptedResolver("10.0.0.1", "169.254.169.254")
    resolver = GuardedResolver(inner)
    with pytest.raises(ForbiddenAddressError):
        await resolver.resolve("rebound.example.com", 443)
    await resolver.close()
    assert inner.closed


async def test_an_honest_name_resolves() -> None:
    found = await GuardedResolver(ScriptedResolver("10.0.0.1")).resolve("gw.example.com", 443)
    assert [result["host"] for result in found] == ["10.0.0.1"]
