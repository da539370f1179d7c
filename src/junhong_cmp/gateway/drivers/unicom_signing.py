"""The signed body of a call to China Unicom's platform."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Final

import orjson

from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential

CARRIER_TIME: Final = timezone(timedelta(hours=8))

_DIGEST: Final = "sm3"
_VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class UnicomAccess:
    """What the platform gave a customer: application, open id and the application's secret."""

    app_id: str
    open_id: str
    secret: str = field(repr=False)


def access_of(credential: Credential) -> UnicomAccess:
    """Read a credential: ``key_id`` is ``app_id.open_id`` (the first alone if both are the same)."""
    app_id, _, open_id = credential.key_id.partition(".")
    return UnicomAccess(app_id, open_id or app_id, credential.secret)


def token_of(access: UnicomAccess, timestamp: str, trans_id: str) -> str:
    """Return the signature: the SM3 digest of the public fields, by name, and the secret.

    Raises:
        GatewayNotConfigured: this machine's OpenSSL was built without SM3.

    """
    text = f"app_id{access.app_id}timestamp{timestamp}trans_id{trans_id}{access.secret}"
    try:
        return hashlib.new(_DIGEST, text.encode()).hexdigest()
    except ValueError as error:
        raise GatewayNotConfigured("本机的 OpenSSL 没有 SM3 摘要，无法为联通接口签名") from error


def new_serial(now: datetime) -> str:
    """Return a serial number in the platform's form: carrier time to the millisecond and six digits."""
    local = now.astimezone(CARRIER_TIME)
    return f"{local:%Y%m%d%H%M%S}{local.microsecond // 1000:03d}{secrets.randbelow(10**6):06d}"


def signed_body(
    access: UnicomAccess, message_id: str, question: Mapping[str, object], now: datetime
) -> bytes:
    """Return the whole body of an attempt, with a serial number of its own."""
    local = now.astimezone(CARRIER_TIME)
    timestamp = f"{local:%Y-%m-%d %H:%M:%S} {local.microsecond // 1000:03d}"
    trans_id = new_serial(now)
    return orjson.dumps(
        {
            "app_id": access.app_id,
            "timestamp": timestamp,
            "trans_id": trans_id,
            "token": token_of(access, timestamp, trans_id),
            "data": {"messageId": message_id, "openId": access.open_id, "version": _VERSION, **question},
        }
    )
