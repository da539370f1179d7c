"""Secrets are blanked by name, by shape and by value."""

import pytest

from junhong_cmp.logs import SecretMask


@pytest.mark.parametrize(
    "text",
    [
        "redis://:canary@h:6379/0",
        "redis://user:canary@h",
        "connect to postgresql://u:canary@h/db failed",
        "redis-sentinel://:canary@a:1,b:2/0",
        "postgresql://u:cana/ry:canary@h/db",
        "Authorization: Bearer canary",
        "Authorization: canary",
        "{'Authorization': 'Basic canary'}",
        "bearer canarycanary",
        "GET /v1?sign=canary&x=1",
        "token=canary, other",
        '{"access_token": "canary"}',
        "password: canary",
        "PGPASSWORD=canary",
        "client_secret=canary",
        "X-Signature: canary",
    ],
)
def test_shapes(text: str) -> None:
    masked = SecretMask().text(text)
    assert "canary" not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "text",
    [
        "卡 89860012345678901234 轮询完成",
        "signal=SIGTERM",
        "https://h:443/path",
        "design=blue",
        "user@host",
        "tokens",
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert SecretMask().text(text) == text


def test_known_secrets_are_blanked_wherever_they_are() -> None:
    mask = SecretMask(["canary-1", "canary-12", "abc"])
    assert mask.text("x canary-12 y canary-1 abc") == "x *** y *** abc"


def test_fields_are_masked_by_name_at_any_depth() -> None:
    event = SecretMask()(
        None,
        "info",
        {
            "event": "e",
            "password": "canary",
            "gateway_secret": "canary",
            "X-Sign": "canary",
            "body": {"token": "canary", "list": [{"api_key": "canary"}, "token=canary"]},
            "raw": b"password=canary",
            "error": ValueError("redis://:canary@h"),
            "signal": "SIGTERM",
            "tokens_left": 5,
            "token": None,
        },
    )
    assert "canary" not in repr(event)
    assert event["signal"] == "SIGTERM"
    assert event["tokens_left"] == 5
    assert event["token"] is None
