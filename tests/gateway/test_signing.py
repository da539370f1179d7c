import hashlib
import re
from pathlib import Path

import orjson
import pytest

from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.signing import (
    KEY_ID_HEADER,
    NONCE_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Credential,
    canonical_request,
    check_strength,
    signature_of,
    signed_headers,
)

CONTRACT = Path(__file__).parents[2] / "docs" / "reference" / "gateway-contract.md"


def documented_vectors() -> list[dict[str, str]]:
    block = re.search(r"```json\n(\[.*?\])\n```", CONTRACT.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    vectors: list[dict[str, str]] = orjson.loads(block[1])
    return vectors


@pytest.mark.parametrize("vector", documented_vectors(), ids=lambda vector: vector["key_id"])
def test_the_documented_vectors_hold(vector: dict[str, str]) -> None:
    body = vector["body"].encode()
    canonical = canonical_request(
        path=vector["path"],
        key_id=vector["key_id"],
        timestamp=vector["timestamp"],
        nonce=vector["nonce"],
        body=body,
    )
    assert hashlib.sha256(body).hexdigest() == vector["body_sha256"]
    assert canonical.splitlines()[-1].decode() == vector["body_sha256"]
    assert signature_of(canonical, vector["secret"]) == vector["signature"]


def test_the_canonical_form_is_frozen_without_the_document_too() -> None:
    canonical = canonical_request(
        path="/v1/usage/query", key_id="demo", timestamp="1767225600", nonce="0" * 32, body=b"{}"
    )
    assert canonical == (
        b"JUNHONG-HMAC-SHA256-V1\nPOST\n/v1/usage/query\ndemo\n1767225600\n00000000000000000000000000000000\n"
        b"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )
    # Computed with: openssl dgst -sha256 -hmac 0123456789abcdef
    assert (
        signature_of(canonical, "0123456789abcdef")
        == "135591755b39212fc1b077bcc8938c70a6c13ebb481fc150004a654db3f1b1fd"
    )


def test_each_signing_has_a_nonce_of_its_own() -> None:
    credential = Credential("demo", "s" * 32)
    first, second = (signed_headers(credential, path="/p", body=b"", unix_s=1_700_000_000) for _ in range(2))
    assert first[KEY_ID_HEADER] == "demo"
    assert first[TIMESTAMP_HEADER] == "1700000000"
    assert re.fullmatch("[0-9a-f]{32}", first[NONCE_HEADER])
    assert first[NONCE_HEADER] != second[NONCE_HEADER]
    assert first[SIGNATURE_HEADER] != second[SIGNATURE_HEADER]


def test_a_credential_never_shows_its_secret() -> None:
    assert "canary" not in repr(Credential("demo", "canary-secret-0123456789"))


@pytest.mark.parametrize(
    ("key_id", "secret", "complaints"),
    [("", "x" * 16, 1), ("a\nb", "x" * 16, 1), ("k k", "", 2)],
)
def test_an_unusable_credential_is_refused_without_showing_it(
    key_id: str, secret: str, complaints: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        Credential(key_id, secret)
    assert len(caught.value.problems) == complaints
    assert "canary" not in str(caught.value)


def test_a_secret_too_short_to_sign_with_is_refused_without_showing_it() -> None:
    check_strength(Credential("demo", "x" * 16))
    with pytest.raises(ConfigError, match="太短") as caught:
        check_strength(Credential("demo", "short-canary"))
    assert "canary" not in str(caught.value)
