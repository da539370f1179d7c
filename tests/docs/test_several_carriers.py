"""The how-to's accounts, addresses and credentials fit each other."""

import re
import shlex
from pathlib import Path

import pytest
from tests.worker_process import WorkerProcess

from junhong_cmp import config
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.db.pool import Pool
from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.client import GatewayCall
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.ctcc_signing import access_of
from junhong_cmp.gateway.drivers.table import DRIVERS, batch_size_of
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.polling.gateway_account import gateway_account

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "several-carriers.md"
SERVICES = {"JUNHONG_REDIS_URL": "redis://h", "JUNHONG_POSTGRES_DSN": "postgresql://h/d"}


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def settings_of_the_page(folder: Path, credentials: str) -> config.Settings:
    file = folder / "credentials.json"
    file.write_text(credentials, encoding="utf-8")
    environ = {**SERVICES, **dict(line.split("=", 1) for line in block("ini").splitlines())}
    assert environ["JUNHONG_GATEWAY_CREDENTIALS_FILE"] == "/run/secrets/junhong_credentials"
    return config.load(environ={**environ, "JUNHONG_GATEWAY_CREDENTIALS_FILE": str(file)}, cwd=folder)


async def test_every_account_has_an_address_that_is_allowed_and_a_credential(
    pool: Pool, postgres_dsn: str, tmp_path: Path
) -> None:
    gateway = settings_of_the_page(tmp_path, block("json")).gateway
    assert gateway.url is not None
    own = gateway.url.get_secret_value()
    directory = Directory(
        EndpointPolicy(
            allow_http=gateway.allow_http,
            allowed_hosts={*gateway.allowed_hosts, own.removeprefix("https://")},
        ),
        base_url=own,
        credentials={
            ref: Credential(each.key_id, each.secret.get_secret_value())
            for ref, each in gateway.credentials.items()
        },
        default_credential=None,
    )
    for line in block("bash").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "junhong"
        services = {"JUNHONG_REDIS_URL": "redis://unused", "JUNHONG_POSTGRES_DSN": postgres_dsn}
        async with WorkerProcess(services, arguments=arguments) as command:
            assert await command.wait_exit() == 0, command.log_text
    async with pool.acquire() as conn:
        accounts = {account.code: account for account in await list_accounts(conn)}
    assert set(accounts) == set(gateway.credentials)
    for code, account in accounts.items():
        route = directory.route_of(gateway_account(account))
        assert route.credential.key_id == gateway.credentials[code].key_id
        defaults = DRIVERS[account.driver].defaults
        assert (account.billing_day, account.usage_unit) == (defaults.billing_day, defaults.usage_unit)
        assert batch_size_of(gateway_account(account), GatewayCall.USAGE) == account.batch_size
    telecom = directory.route_of(gateway_account(accounts["ctcc-01"]))
    assert access_of(telecom.credential).password == "the password"


def test_a_name_that_stands_twice_is_refused_with_the_name_only(tmp_path: Path) -> None:
    twice = block("json").replace('"cucc-01"', '"cmcc-01"')
    with pytest.raises(ConfigError) as caught:
        settings_of_the_page(tmp_path, twice)
    assert "中 cmcc-01 出现两次" in str(caught.value)
    assert "password" not in str(caught.value)
