"""Names are derived from the model, and no two leaves share one."""

import pytest
from pydantic import BaseModel, SecretStr

from junhong_cmp.config import Settings
from junhong_cmp.config.variables import derive_variables

FIXED = {
    "JUNHONG_WORKER_ROLE",
    "JUNHONG_WORKER_INSTANCE_NAME",
    "JUNHONG_REDIS_URL",
    "JUNHONG_POSTGRES_DSN",
    "JUNHONG_STORAGE_URL",
    "JUNHONG_GATEWAY_URL",
    "JUNHONG_GATEWAY_KEY_ID",
    "JUNHONG_GATEWAY_SECRET",
    "JUNHONG_QUEUE_CONCURRENCY",
    "JUNHONG_QUEUE_WEIGHTS",
    "JUNHONG_SHUTDOWN_GRACE",
    "JUNHONG_START_LIMIT",
    "JUNHONG_LOG_LEVEL",
    "JUNHONG_LOG_FORMAT",
    "JUNHONG_DATA_DIR",
}


def test_the_documented_names_exist_and_each_is_explained() -> None:
    variables = derive_variables(Settings)
    assert set(variables) >= FIXED
    assert all(variable.description for variable in variables.values())


def test_whatever_can_hold_a_password_is_secret() -> None:
    secret = {name for name, variable in derive_variables(Settings).items() if variable.secret}
    assert secret == {
        "JUNHONG_REDIS_URL",
        "JUNHONG_POSTGRES_DSN",
        "JUNHONG_POSTGRES_PASSWORD",
        "JUNHONG_STORAGE_URL",
        "JUNHONG_GATEWAY_URL",
        "JUNHONG_GATEWAY_SECRET",
        "JUNHONG_GATEWAY_CREDENTIALS",
    }


class _Instance(BaseModel):
    name: str = ""


class _Worker(BaseModel):
    instance: _Instance = _Instance()
    instance_name: str = ""


class _Clashing(BaseModel):
    worker: _Worker = _Worker()


class _SecretFile(BaseModel):
    token: SecretStr = SecretStr("")
    token_file: str = ""


@pytest.mark.parametrize("model", [_Clashing, _SecretFile])
def test_a_clash_is_found(model: type[BaseModel]) -> None:
    with pytest.raises(AssertionError, match="clash"):
        derive_variables(model)
