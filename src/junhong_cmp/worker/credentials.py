"""The credentials of gateways and carriers, as the settings have them."""

from typing import NamedTuple

from pydantic import SecretStr

from junhong_cmp.config.connections import GatewaySettings
from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.signing import Credential, check_strength


class Credentials(NamedTuple):
    """The credential of accounts that name none, if there is one, and the others by their names."""

    default: Credential | None
    named: dict[str, Credential]


def read_credentials(settings: GatewaySettings) -> Credentials:
    """Return the credentials of the settings.

    Raises:
        ConfigError: some are of no use; each fault stands under its settings or name, without a value.

    """
    problems: list[str] = []

    def read(place: str, key_id: str, secret: SecretStr, *, signs: bool) -> Credential | None:
        try:
            credential = Credential(key_id, secret.get_secret_value())
            if signs:
                check_strength(credential)
        except ConfigError as error:
            problems.extend(f"{place}：{problem}" for problem in error.problems)
            return None
        return credential

    default = None
    if settings.key_id is not None and settings.secret is not None:
        place = "JUNHONG_GATEWAY_KEY_ID、JUNHONG_GATEWAY_SECRET"
        default = read(place, settings.key_id, settings.secret, signs=True)
    named = {
        name: read(f"JUNHONG_GATEWAY_CREDENTIALS 的 {name}", item.key_id, item.secret, signs=False)
        for name, item in settings.credentials.items()
    }
    if problems:
        raise ConfigError(problems)
    return Credentials(default, {name: found for name, found in named.items() if found is not None})
