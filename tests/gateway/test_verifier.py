from collections.abc import Callable

import pytest

from junhong_cmp.gateway.signing import (
    KEY_ID_HEADER,
    NONCE_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Credential,
    signed_headers,
)
from junhong_cmp.gateway.verifier import ReplayGuard, RequestVerifier, SignatureRejectedError

NOW_S = 1_800_000_000
CREDENTIAL = Credential("demo", "canary-secret-0123456789")
BODY = b'{"account":"a"}'
Headers = dict[str, str]


def verify(verifier: RequestVerifier, headers: Headers, *, path: str = "/p", body: bytes = BODY) -> None:
    verifier.verify(headers, path=path, body=body, now_s=NOW_S)


def signed(unix_s: int = NOW_S, credential: Credential = CREDENTIAL) -> Headers:
    return signed_headers(credential, path="/p", body=BODY, unix_s=unix_s)


@pytest.fixture
def verifier() -> RequestVerifier:
    return RequestVerifier({"demo": CREDENTIAL})


@pytest.mark.parametrize("offset_s", [-300, 0, 300])
def test_a_fresh_signed_request_is_believed(verifier: RequestVerifier, offset_s: int) -> None:
    verify(verifier, signed(NOW_S + offset_s))


@pytest.mark.parametrize("offset_s", [-301, 301, 10**9])
def test_a_stale_or_early_request_is_refused(verifier: RequestVerifier, offset_s: int) -> None:
    with pytest.raises(SignatureRejectedError, match="时间戳"):
        verify(verifier, signed(NOW_S + offset_s))


def test_a_request_is_believed_once(verifier: RequestVerifier) -> None:
    headers = signed()
    verify(verifier, headers)
    with pytest.raises(SignatureRejectedError, match="重放"):
        verify(verifier, headers)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda h: h | {SIGNATURE_HEADER: "0" * 64},
        lambda h: h | {SIGNATURE_HEADER: "签名\ud800"},
        lambda h: h | {SIGNATURE_HEADER: h[SIGNATURE_HEADER].upper()},
        lambda h: h | {KEY_ID_HEADER: "somebody"},
        lambda h: h | {NONCE_HEADER: "0" * 32},
        lambda h: h | {TIMESTAMP_HEADER: str(NOW_S - 1)},
        lambda h: {name: value for name, value in h.items() if name != SIGNATURE_HEADER},
    ],
)
def test_a_tampered_request_is_refused(
    verifier: RequestVerifier, spoil: Callable[[Headers], Headers]
) -> None:
    with pytest.raises(SignatureRejectedError, match="签名无效"):
        verify(verifier, spoil(signed()))


@pytest.mark.parametrize(
    "spoil",
    [{TIMESTAMP_HEADER: ""}, {TIMESTAMP_HEADER: "８"}, {TIMESTAMP_HEADER: "-5"}, {NONCE_HEADER: "short"}],
)
def test_malformed_headers_are_refused(verifier: RequestVerifier, spoil: Headers) -> None:
    with pytest.raises(SignatureRejectedError, match="缺失或格式错误"):
        verify(verifier, signed() | spoil)


def test_path_and_body_are_signed(verifier: RequestVerifier) -> None:
    with pytest.raises(SignatureRejectedError):
        verify(verifier, signed(), path="/q")
    with pytest.raises(SignatureRejectedError):
        verify(verifier, signed(), body=BODY + b" ")


def test_the_empty_secret_opens_nothing(verifier: RequestVerifier) -> None:
    """An unknown key is checked against an empty secret so that timing says nothing; it must still fail."""
    forged = object.__new__(Credential)
    object.__setattr__(forged, "key_id", "somebody")
    object.__setattr__(forged, "secret", "")
    with pytest.raises(SignatureRejectedError, match="签名无效"):
        verify(verifier, signed(credential=forged))


def test_two_keys_work_at_a_time_for_rotation() -> None:
    new = Credential("new", "another-secret-0123456789")
    verifier = RequestVerifier({"demo": CREDENTIAL, "new": new})
    verify(verifier, signed())
    verify(verifier, signed(credential=new))


def test_a_nonce_is_forgotten_only_when_its_timestamp_can_pass_no_more() -> None:
    guard = ReplayGuard(window_s=300)
    assert guard.admit("k", "n", timestamp_s=1300, now_s=1000)
    assert guard.admit("k", "other", timestamp_s=1600, now_s=1600)  # the last instant 1300 may pass
    assert not guard.admit("k", "n", timestamp_s=1300, now_s=1600)
    assert guard.admit("k", "other", timestamp_s=1601, now_s=1601)
    assert set(guard._seen) == {1600, 1601}
