"""The settings of a command that does one thing and ends."""

from collections.abc import Mapping
from enum import Enum

from junhong_cmp import config, logs


class Service(Enum):
    """A service that a worker needs and not every command does; the value is an address nobody listens on."""

    REDIS = ("redis.url", "unix:///unused")
    POSTGRES = ("postgres.dsn", "postgresql:///unused")


def load_settings(
    flags: Mapping[str, object],
    *,
    without: Service | None = None,
    demands: Mapping[str, config.Demand] | None = None,
) -> config.Settings:
    """Return the effective settings; set the log up, and say there what is odd about them.

    The address of the service the command does ``without`` may be left unset; it is not to be used then.
    ``demands`` are, by dotted path, what this command asks of a value that others may leave as it is.
    The log goes to standard error and begins at warnings: standard output belongs to the command's result.

    Raises:
        ConfigError: with every fault found.

    """
    fallbacks = dict([without.value] if without else [])
    resolution = config.resolve(flags=flags, fallbacks=fallbacks, demands=demands)
    logs.configure(
        level=logs.LogLevel.WARNING, fmt=resolution.settings.log.format, secrets=resolution.secrets
    )
    resolution.report_oddities()
    return resolution.settings
