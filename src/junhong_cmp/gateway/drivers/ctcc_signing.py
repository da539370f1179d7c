"""The signed address of a call to China Telecom's platform: everything is in its query string."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from junhong_cmp.gateway.drivers.ctcc_cipher import KEY_CHARS, CtccCipher
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential

UNSIGNED: Final = frozenset({"needDtl", "pageIndex"})
"""Parameters that the signature leaves out."""


@dataclass(frozen=True, slots=True)
class CtccAccess:
    """What the platform gave a customer: user, password and its cipher; no repr shows the secrets.

    ``written_password`` is the password as calls carry it.
    """

    user_id: str
    password: str = field(repr=False)
    written_password: str = field(repr=False)
    cipher: CtccCipher = field(repr=False)

    def sign(self, values: tuple[str, ...]) -> str:
        """Return the signature over some values: sorted, joined by commas, enciphered."""
        return self.cipher.encrypt(",".join(sorted(values)))


@lru_cache(maxsize=256)  # setting up the key costs more than a signature
def access_of(credential: Credential) -> CtccAccess:
    """Read a credential: ``key_id`` is the user, ``secret`` the password followed by the nine-character key.

    Raises:
        GatewayNotConfigured: the secret is too short to hold both.

    """
    password, key = credential.secret[:-KEY_CHARS], credential.secret[-KEY_CHARS:]
    if not password:
        raise GatewayNotConfigured(f"电信账号的密钥应为接口口令后紧接 {KEY_CHARS} 位密钥")
    cipher = CtccCipher(key)
    return CtccAccess(credential.key_id, password, cipher.encrypt(password), cipher)


def signed_query(access: CtccAccess, method: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the whole query of a call.

    Signed are the method, user, password in the clear and every parameter's value but the ``UNSIGNED``.
    """
    signed = [value for name, value in parameters.items() if name not in UNSIGNED]
    sign = access.sign((method, access.user_id, access.password, *signed))
    return {
        "method": method,
        "user_id": access.user_id,
        "passWord": access.written_password,
        "sign": sign,
        **parameters,
    }
