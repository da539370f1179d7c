"""Read every source, lay them over each other, check the whole, and report all faults at once."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from pydantic import BaseModel, SecretStr, ValidationError

from junhong_cmp.config.problems import describe
from junhong_cmp.config.settings import Settings
from junhong_cmp.config.sources import Layer, read_dotenv, read_environment, read_flags, read_yaml
from junhong_cmp.config.values import format_duration, secret_parts
from junhong_cmp.config.variables import CONFIG_VARIABLE, Variable, derive_variables
from junhong_cmp.errors import ConfigError
from junhong_cmp.logs import MASK, SecretMask

log = structlog.stdlib.get_logger(__name__)

CONFIG_FLAG: Final = "config"
DEFAULT_ORIGIN: Final = "默认值"

Demand = Callable[[Any], str | None]
"""What a caller asks of one value, as its source gives it, or None: what is wrong with it, if anything."""


@dataclass(frozen=True, slots=True)
class ResolvedValue:
    """One effective setting, safe to show, and where it came from."""

    variable: str
    path: str
    shown: str
    origin: str
    description: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """The settings, the origin of each value, the oddities met, and the secrets that must never show."""

    settings: Settings
    values: tuple[ResolvedValue, ...]
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]

    def report_oddities(self) -> None:
        """Log what was odd about the sources; the log must be set up."""
        for warning in self.warnings:
            log.warning("配置中有可疑之处", detail=warning)


def load(
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Return the effective settings; flags win over environment, ``.env``, YAML file and defaults.

    ``flags`` are given by dotted path (``{"worker.role": "leader"}``; ``config`` names the YAML file);
    None stands for a flag that was not given.

    Raises:
        ConfigError: with every fault found, and every oddity that may explain one.

    """
    resolution = resolve(flags=flags, environ=environ, cwd=cwd)
    resolution.report_oddities()
    return resolution.settings


def resolve(
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    fallbacks: Mapping[str, object] | None = None,
    demands: Mapping[str, Demand] | None = None,
) -> Resolution:
    """Do what :func:`load` does, and say where every value came from.

    ``fallbacks`` give, by dotted path, what no source does, for callers that can do without a needed setting;
    ``demands`` are what callers ask beyond what every program does, so that all faults are told at once.
    """
    variables = derive_variables(Settings)
    layers = _read_layers(
        flags or {}, os.environ if environ is None else environ, cwd or Path.cwd(), variables
    )
    layers.append(replace(read_flags(fallbacks or {}, variables), origin=DEFAULT_ORIGIN))
    raw, origins = _overlay(layers, variables)
    problems = [problem for layer in layers for problem in layer.problems]
    problems += _unmet(demands or {}, layers, variables)
    warnings = [warning for layer in layers for warning in layer.warnings]
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        problems += [describe(item, variables, origins) for item in error.errors(include_url=False)]
        # A mistyped name is often why another is missing, so the oddities are told too. The cause is not:
        # it holds raw values, secrets among them.
        raise ConfigError([*problems, *warnings]) from None
    if problems:
        raise ConfigError([*problems, *warnings])
    return Resolution(
        settings=settings,
        values=tuple(_resolved(variable, settings, origins) for variable in variables.values()),
        warnings=tuple(warnings),
        secrets=tuple(_secrets_of(settings)),
    )


def _read_layers(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    variables: Mapping[str, Variable],
) -> list[Layer]:
    own_flags = {path: value for path, value in flags.items() if path != CONFIG_FLAG}
    dotenv, dotenv_config = read_dotenv(cwd / ".env", variables)
    layers = [read_flags(own_flags, variables), read_environment("环境变量", environ, variables), dotenv]
    config_file = flags.get(CONFIG_FLAG) or environ.get(CONFIG_VARIABLE) or dotenv_config
    if config_file:
        layers.append(read_yaml(cwd / Path(str(config_file)), variables))
    return layers


def _overlay(
    layers: Sequence[Layer],
    variables: Mapping[str, Variable],
) -> tuple[dict[str, Any], dict[str, str]]:
    sections = [name for name, field in Settings.model_fields.items() if _is_section(field.annotation)]
    raw: dict[str, Any] = {name: {} for name in sections}
    origins: dict[str, str] = {}
    for name, variable in variables.items():
        for layer in layers:
            if name in layer.values:
                target = raw
                for part in variable.path[:-1]:
                    target = target[part]
                target[variable.path[-1]] = layer.values[name]
                origins[name] = layer.origin_of(name)
                break
    return raw, origins


def _unmet(
    demands: Mapping[str, Demand], layers: Sequence[Layer], variables: Mapping[str, Variable]
) -> list[str]:
    found = []
    for variable in variables.values():
        demand = demands.get(variable.dotted)
        if demand is not None:
            given = (layer.values[variable.name] for layer in layers if variable.name in layer.values)
            complaint = demand(next(given, None))
            found += [f"{variable.name} {complaint}"] if complaint else []
    return found


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _resolved(variable: Variable, settings: Settings, origins: Mapping[str, str]) -> ResolvedValue:
    value: Any = settings
    for part in variable.path:
        value = getattr(value, part)
    return ResolvedValue(
        variable=variable.name,
        path=variable.dotted,
        shown=_show(value, secret=variable.secret),
        origin=origins.get(variable.name, DEFAULT_ORIGIN),
        description=variable.description,
    )


def _show(value: Any, *, secret: bool) -> str:
    if value is None or value in ("", (), {}):
        return "（未设置）"
    if secret:
        text = value.get_secret_value() if isinstance(value, SecretStr) else ""
        return SecretMask().text(text) if "://" in text else MASK
    return _show_plain(value)


def _show_plain(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _secrets_of(model: BaseModel) -> list[str]:
    found: list[str] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            found += _secrets_of(value)
        elif isinstance(value, SecretStr):
            found += secret_parts(value.get_secret_value())
        elif isinstance(value, Mapping):
            for item in value.values():
                found += _secrets_of(item) if isinstance(item, BaseModel) else []
    return found
