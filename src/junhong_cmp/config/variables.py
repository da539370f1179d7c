"""The variables of the configuration, derived from the model: one leaf, one ``JUNHONG_*`` name.

Splitting an environment name at its underscores would be ambiguous (``worker.instance_name`` or
``worker.instance.name``?), so names are never parsed: they are built from the model and looked up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

PREFIX: Final = "JUNHONG_"
CONFIG_VARIABLE: Final = f"{PREFIX}CONFIG"  # names the YAML file; not part of the model
FILE_SUFFIX: Final = "_FILE"


@dataclass(frozen=True, slots=True)
class Variable:
    """One leaf of the model: its place, its environment name, and whether it must never be shown."""

    path: tuple[str, ...]
    name: str
    description: str
    secret: bool

    @property
    def dotted(self) -> str:
        """The place in the YAML file, e.g. ``worker.role``."""
        return ".".join(self.path)

    @property
    def file_name(self) -> str:
        """The variable naming a file that holds the value; only secrets have one."""
        return self.name + FILE_SUFFIX


def derive_variables(model: type[BaseModel]) -> dict[str, Variable]:
    """Return the variables of ``model`` by environment name, in the model's order.

    Raises:
        AssertionError: two leaves would share a name, so one of them could never be set.

    """
    variables: dict[str, Variable] = {}
    taken = {CONFIG_VARIABLE}
    for variable in _leaves(model, ()):
        names = {variable.name, variable.file_name} if variable.secret else {variable.name}
        if names & taken:
            raise AssertionError(f"variable names clash: {sorted(names & taken)}")
        taken |= names
        variables[variable.name] = variable
    return variables


def _leaves(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[Variable]:
    for name, field in model.model_fields.items():
        here = (*path, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _leaves(field.annotation, here)
        else:
            yield Variable(
                path=here,
                name=PREFIX + "_".join(here).upper(),
                description=field.description or "",
                secret=_is_secret(field),
            )


def _is_secret(field: FieldInfo) -> bool:
    extra: Any = field.json_schema_extra
    marked = isinstance(extra, Mapping) and bool(extra.get("secret"))
    return marked or _mentions_secret(field.annotation)


def _mentions_secret(annotation: Any) -> bool:
    return annotation is SecretStr or any(_mentions_secret(part) for part in get_args(annotation))
