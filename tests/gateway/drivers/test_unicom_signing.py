import hashlib
from datetime import UTC, datetime

import orjson
import pytest

from junhong_cmp.gateway.drivers.unicom_signing import access_of, new_serial, signed_body, token_of
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.signing import Credential

ACCESS = access_of(Credential("app.open-id", "canary-secret"))
NOW = datetime(2026, 2, 28, 16, 0, 0, 7_999, tzinfo=UTC)


def test_the_digest_is_sm3() -> None:
    """The standard's own example (GB/T 32905, A.1)."""
    assert hashlib.new("sm3", b"abc").hexdigest() == (
        "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"
    )


def test_a_token_is_the_digest_of_the_named_fields_and_the_secret() -> None:
    text = b"app_idapptimestamp2017-06-20 00:00:00 041trans_id20170620000000041500357canary-secret"
    token = token_of(ACCESS, "2017-06-20 00:00:00 041", "20170620000000041500357")
    assert token == hashlib.new("sm3", text).hexdigest()
    assert token == "fe80dcc7ead2dc69f0094667c4bc158872ecb1b489a7bf6946b2fd70052703cb"


def test_without_sm3_nothing_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    def new(name: str, _data: bytes) -> None:
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(hashlib, "new", new)
    with pytest.raises(GatewayNotConfigured, match="SM3"):
        token_of(ACCESS, "t", "s")


def test_a_body_is_signed_in_carrier_time_to_the_millisecond() -> None:
    body = orjson.loads(signed_body(ACCESS, "usage-1", {"iccids": ["x"]}, NOW))
    assert body["app_id"] == "app"
    assert body["timestamp"] == "2026-03-01 00:00:00 007"
    assert body["trans_id"].startswith("20260301000000007")
    assert body["token"] == token_of(ACCESS, body["timestamp"], body["trans_id"])
    assert body["data"] == {
        "messageId": "usage-1",
        "openId": "open-id",
        "version": "1.0",
        "iccids": ["x"],
    }


def test_serial_numbers_have_twenty_three_digits_and_differ() -> None:
    serials = {new_serial(NOW) for _ in range(50)}
    assert len(serials) > 45
    assert all(len(serial) == 23 and serial.isdecimal() for serial in serials)


@pytest.mark.parametrize(
    ("key_id", "app_id", "open_id"), [("a.b", "a", "b"), ("a", "a", "a"), ("a.b.c", "a", "b.c")]
)
def test_a_key_id_names_application_and_open_id(key_id: str, app_id: str, open_id: str) -> None:
    access = access_of(Credential(key_id, "s"))
    assert (access.app_id, access.open_id) == (app_id, open_id)


def test_no_secret_is_shown() -> None:
    assert "canary" not in repr(ACCESS)
