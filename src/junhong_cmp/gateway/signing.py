"""The signature of a request under the generic gateway contract: HMAC-SHA256, version 1.

The canonical form is frozen by the test vectors in ``docs/reference/gateway-contract.md``.
It has no query string and no encoded path on purpose: everything a request says is in
its body, so there is nothing that two implementations could encode differently.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

from junhong_cmp.errors import ConfigError

SCHEME: Final = "JUNHONG-HMAC-SHA256-V1"
KEY_ID_HEADER: Final = "X-Junhong-Key-Id"
TIMESTAMP_HEADER: Final = "X-Junhong-Timestamp"
NONCE_HEADER: Final = "X-Junhong-Nonce"
SIGNATURE_HEADER: Final = "X-Junhong-Signature"

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MIN_SECRET_BYTES: Final = 16
_NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Credential:
    """A key shared with a gateway or carrier: its public id and its secret, which no repr shows."""

    key_id: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        problems = []
        if not _KEY_ID.fullmatch(self.key_id):
            problems.append("网关密钥编号只能由 1 至 64 个字母、数字、点、下划线或连字符组成")
        if not self.secret:
            problems.append("网关密钥不能为空")
        if problems:
            raise ConfigError(problems)


def check_strength(credential: Credential) -> None:
    """Return if the secret is long enough to sign with; how long those of carriers are is theirs to say.

    Raises:
        ConfigError: it is not.

    """
    if len(credential.secret.encode()) < _MIN_SECRET_BYTES:
        raise ConfigError([f"网关密钥太短，至少需要 {_MIN_SECRET_BYTES} 字节"])


def canonical_request(*, path: str, key_id: str, timestamp: str, nonce: str, body: bytes) -> bytes:
    """Return the bytes that are signed; ``path`` is the contract's own, below the base URL."""
    digest = hashlib.sha256(body).hexdigest()
    return f"{SCHEME}\nPOST\n{path}\n{key_id}\n{timestamp}\n{nonce}\n{digest}".encode()


def signature_of(canonical: bytes, secret: str) -> str:
    """Return the lower-case hexadecimal HMAC-SHA256 of a canonical request."""
    return hmac.digest(secret.encode(), canonical, "sha256").hex()


def signed_headers(credential: Credential, *, path: str, body: bytes, unix_s: int) -> dict[str, str]:
    """Sign a request as of ``unix_s`` with a nonce of its own; a request sent again is signed again."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    canonical = canonical_request(
        path=path, key_id=credential.key_id, timestamp=str(unix_s), nonce=nonce, body=body
    )
    return {
        KEY_ID_HEADER: credential.key_id,
        TIMESTAMP_HEADER: str(unix_s),
        NONCE_HEADER: nonce,
        SIGNATURE_HEADER: signature_of(canonical, credential.secret),
    }
