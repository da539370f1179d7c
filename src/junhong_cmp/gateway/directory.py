"""Where an account's calls go and who signs them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential


class Route(NamedTuple):
    """A checked base URL and the credential for it."""

    base: URL
    credential: Credential

    def endpoint(self, path: str) -> URL:
        """Return the address of a contract path, which begins with a slash, below the base URL."""
        return _join(self.base, path)


@lru_cache(maxsize=1024)  # joining costs more than signing, and the pairs are few
def _join(base: URL, path: str) -> URL:
    return base.with_path(base.path.rstrip("/") + path)


class Directory:
    """A directory finds the route of an account, from its row and the gateway's defaults."""

    def __init__(
        self,
        policy: EndpointPolicy,
        *,
        base_url: str,
        credentials: Mapping[str, Credential],
        default_credential: Credential | None,
    ) -> None:
        self._policy = policy
        self._base_url = base_url
        self._credentials = dict(credentials)
        self._default_credential = default_credential
        self._checked: dict[str, URL] = {}

    def route_of(self, account: GatewayAccount) -> Route:
        """Return the account's route.

        Raises:
            GatewayNotConfigured: its address is not allowed or its credential is not known.

        """
        return Route(self._base_of(account), self._credential_of(account))

    def _base_of(self, account: GatewayAccount) -> URL:
        text = account.base_url or self._base_url
        base = self._checked.get(text)
        if base is None:
            base = self._checked[text] = self._policy.check(text)
        return base

    def _credential_of(self, account: GatewayAccount) -> Credential:
        if account.credential_ref is None:
            credential = self._default_credential
        else:
            credential = self._credentials.get(account.credential_ref)
        if credential is None:
            raise GatewayNotConfigured(f"账号 {account.code} 的网关密钥未配置")
        return credential
