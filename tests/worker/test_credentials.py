"""Which credential is of no use is said by its name, and never shown."""

import pytest
from pydantic import SecretStr

from junhong_cmp.config.connections import GatewaySettings
from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.worker.credentials import read_credentials


def settings(**gateway: object) -> GatewaySettings:
    return GatewaySettings.model_validate({"url": "https://gateway.invalid", **gateway})


def test_the_default_signs_and_those_of_carriers_are_as_short_as_they_are() -> None:
    named = {"cmcc": {"key_id": "app", "secret": "short"}}
    found = read_credentials(settings(key_id="k", secret=SecretStr("x" * 16), credentials=named))
    assert found.default == Credential("k", "x" * 16)
    assert found.named == {"cmcc": Credential("app", "short")}
    assert read_credentials(settings()) == (None, {})


def test_every_fault_is_told_under_its_name() -> None:
    named = {
        "移动": {"key_id": "a b", "secret": "canary"},
        "联通": {"key_id": "ok", "secret": "canary"},
    }
    with pytest.raises(ConfigError) as caught:
        read_credentials(settings(key_id="k", secret=SecretStr("canary"), credentials=named))
    default, of_carrier = caught.value.problems
    assert default == "JUNHONG_GATEWAY_KEY_ID、JUNHONG_GATEWAY_SECRET：网关密钥太短，至少需要 16 字节"
    assert of_carrier.startswith("JUNHONG_GATEWAY_CREDENTIALS 的 移动：网关密钥编号只能由 ")
    assert "canary" not in of_carrier
