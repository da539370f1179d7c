"""The other side of signing: what a gateway checks before it believes a request."""

import hmac
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from junhong_cmp.gateway.signing import (
    KEY_ID_HEADER,
    NONCE_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Credential,
    canonical_request,
    signature_of,
)

REPLAY_WINDOW: Final = timedelta(seconds=300)
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")


class SignatureRejectedError(Exception):
    """The request is not signed by a key we know, now, and for the first time."""


class ReplayGuard:
    """A replay guard remembers nonces, by the second of their timestamp, until that is too old to pass."""

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        self._seen: dict[int, set[int]] = {}

    def admit(self, key_id: str, nonce: str, *, timestamp_s: int, now_s: float) -> bool:
        """Return whether this is the first time; a keyed hash stands for the nonce to save memory."""
        marks = self._seen.get(timestamp_s)
        if marks is None:
            self._forget_before(now_s - self._window_s)
            marks = self._seen[timestamp_s] = set()
        mark = hash((key_id, nonce))
        if mark in marks:
            return False
        marks.add(mark)
        return True

    def _forget_before(self, oldest_s: float) -> None:
        for second in [second for second in self._seen if second < oldest_s]:
            del self._seen[second]


class RequestVerifier:
    """A request verifier admits requests that are signed, fresh and new."""

    def __init__(self, credentials: Mapping[str, Credential], *, window: timedelta = REPLAY_WINDOW) -> None:
        self._credentials = dict(credentials)
        self._window_s = int(window.total_seconds())
        self._guard = ReplayGuard(self._window_s)

    def verify(self, headers: Mapping[str, str], *, path: str, body: bytes, now_s: float) -> None:
        """Return if the request may be believed.

        Raises:
            SignatureRejectedError: with a Chinese reason that does not tell a stranger which keys exist.

        """
        key_id = headers.get(KEY_ID_HEADER, "")
        timestamp = headers.get(TIMESTAMP_HEADER, "")
        nonce = headers.get(NONCE_HEADER, "")
        if not _TIMESTAMP.fullmatch(timestamp) or not _NONCE.fullmatch(nonce):
            raise SignatureRejectedError("签名请求头缺失或格式错误")
        if abs(int(timestamp) - now_s) > self._window_s:
            raise SignatureRejectedError("时间戳超出允许的窗口，请校准时钟")
        credential = self._credentials.get(key_id)
        # An unknown key costs as much as a known one, so timing does not tell them apart.
        secret = credential.secret if credential else ""
        canonical = canonical_request(path=path, key_id=key_id, timestamp=timestamp, nonce=nonce, body=body)
        expected = signature_of(canonical, secret).encode()
        given = headers.get(SIGNATURE_HEADER, "").encode(errors="replace")
        if not hmac.compare_digest(expected, given) or credential is None:
            raise SignatureRejectedError("签名无效")
        # Last, so that only holders of a key can fill the memory of nonces.
        if not self._guard.admit(key_id, nonce, timestamp_s=int(timestamp), now_s=now_s):
            raise SignatureRejectedError("请求已被使用过（重放）")
