"""Where values come from: each source is read into one layer of raw values with their origin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from dotenv import dotenv_values

from junhong_cmp.config.variables import CONFIG_VARIABLE, PREFIX, Variable

MAX_SECRET_FILE_KIB: Final = 64


@dataclass(slots=True)
class Layer:
    """The values one source gives, by variable name, and what is wrong or odd about it."""

    origin: str
    values: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """For a value that came from a file, the variable that named the file, and the file."""

    def origin_of(self, name: str) -> str:
        """Return where the value of a variable came from, for people."""
        return f"{self.origin} {self.files[name]}" if name in self.files else self.origin


def read_flags(flags: Mapping[str, object], variables: Mapping[str, Variable]) -> Layer:
    """Read command-line flags, given by dotted path; None means the flag was not given."""
    by_path = {variable.dotted: name for name, variable in variables.items()}
    given = {by_path[path]: value for path, value in flags.items() if value is not None}
    return Layer("命令行参数", given)


def read_environment(origin: str, environ: Mapping[str, str], variables: Mapping[str, Variable]) -> Layer:
    """Read environment-like pairs; an empty value is the same as none."""
    layer = Layer(origin)
    for name, variable in variables.items():
        value, path = environ.get(name, ""), environ.get(variable.file_name, "") if variable.secret else ""
        if value and path:
            layer.problems.append(f"{name} 与 {variable.file_name} 只能设置其一")
        elif path:
            _read_secret_file(layer, variable, Path(path))
        elif value:
            layer.values[name] = value
    layer.warnings.extend(_unknown(environ, variables, origin))
    return layer


def read_dotenv(path: Path, variables: Mapping[str, Variable]) -> tuple[Layer, str]:
    """Read a ``.env`` file if there is one; also return the YAML path it names, or an empty text."""
    if not path.is_file():
        return Layer(".env 文件"), ""
    try:
        pairs = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Layer(".env 文件", problems=[f"{path} 无法读取：{_reason(error)}"]), ""
    environ = {name: value for name, value in pairs.items() if value is not None}
    return read_environment(".env 文件", environ, variables), environ.get(CONFIG_VARIABLE, "")


def read_yaml(path: Path, variables: Mapping[str, Variable]) -> Layer:
    """Read a YAML file shaped like the model; the file was asked for, so it must exist."""
    layer = Layer(f"配置文件 {path}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        layer.problems.append(f"配置文件 {path} 无法读取：{_reason(error)}")
        return layer
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"第 {mark.line + 1} 行第 {mark.column + 1} 列" if mark is not None else "内容"
        layer.problems.append(f"配置文件 {path} 不是有效的 YAML：{place}有误")
        return layer
    if content is not None and not isinstance(content, dict):
        layer.problems.append(f"配置文件 {path} 的最外层须为映射，例如 worker: {{role: leader}}")
        return layer
    _take_tree(layer, content or {}, {variable.path: name for name, variable in variables.items()}, ())
    return layer


def _take_tree(
    layer: Layer,
    tree: Mapping[Any, Any],
    leaves: Mapping[tuple[str, ...], str],
    path: tuple[str, ...],
) -> None:
    for key, value in tree.items():
        here = (*path, str(key))
        if here in leaves:
            if value not in (None, ""):
                layer.values[leaves[here]] = value
        elif any(leaf[: len(here)] == here for leaf in leaves):
            if isinstance(value, Mapping):
                _take_tree(layer, value, leaves, here)
            elif value is not None:
                layer.problems.append(f"{layer.origin} 中的 {'.'.join(here)} 须为映射")
        else:
            known = {".".join(leaf) for leaf in leaves}
            layer.warnings.append(
                f"{layer.origin} 中有未知的配置项 {'.'.join(here)}{_nearest('.'.join(here), known)}"
            )


def _read_secret_file(layer: Layer, variable: Variable, path: Path) -> None:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_FILE_KIB * 1024 + 1)
        if len(content) > MAX_SECRET_FILE_KIB * 1024:
            layer.problems.append(f"{variable.file_name} 指向的文件 {path} 超过 {MAX_SECRET_FILE_KIB} KiB")
            return
        text = content.decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        layer.problems.append(f"{variable.file_name} 指向的文件 {path} 无法读取：{_reason(error)}")
        return
    if text:
        layer.values[variable.name] = text
        layer.files[variable.name] = f"{variable.file_name}={path}"
    else:
        layer.problems.append(f"{variable.file_name} 指向的文件 {path} 为空")


def _unknown(environ: Mapping[str, str], variables: Mapping[str, Variable], origin: str) -> Iterator[str]:
    secret_files = {variable.file_name for variable in variables.values() if variable.secret}
    known = {CONFIG_VARIABLE, *variables, *secret_files}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            yield f"{origin}中有未知的变量 {name}{_nearest(name, known)}"


def _nearest(name: str, known: set[str]) -> str:
    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"，是否应为 {matches[0]}" if matches else ""


def _reason(error: OSError | UnicodeDecodeError) -> str:
    reasons: Mapping[type[Exception], str] = {
        FileNotFoundError: "文件不存在",
        PermissionError: "没有读取权限",
        IsADirectoryError: "是目录而不是文件",
        UnicodeDecodeError: "不是 UTF-8 编码",
    }
    return reasons.get(type(error), type(error).__name__)
