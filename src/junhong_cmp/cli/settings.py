"""The settings of a command that does one thing and ends."""

from collections.abc import Mapping

from junhong_cmp import config, logs


def load_settings(flags: Mapping[str, object]) -> config.Settings:
    """Return the effective settings; set the log up, and say there what is odd about them.

    The log goes to standard error and begins at warnings: standard output belongs to the command's result.

    Raises:
        ConfigError: with every fault found.

    """
    resolution = config.resolve(flags=flags)
    logs.configure(
        level=logs.LogLevel.WARNING, fmt=resolution.settings.log.format, secrets=resolution.secrets
    )
    resolution.report_oddities()
    return resolution.settings
