"""What is wrong with a value, as a Chinese sentence naming the variable, the value and what is allowed."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from pydantic_core import ErrorDetails

from junhong_cmp.config.values import format_duration
from junhong_cmp.config.variables import Variable

_Context = Mapping[str, Any]
_Sentence = Callable[[_Context], str]

MAX_SHOWN_CHARS: Final = 80

_SENTENCES: Final[Mapping[str, _Sentence]] = {
    "missing": lambda _: "未设置",
    "enum": lambda ctx: f"只能为 {'、'.join(_choices(ctx))}",
    "bool_parsing": lambda _: "只能为 true 或 false",
    "bool_type": lambda _: "只能为 true 或 false",
    "int_parsing": lambda _: "须为整数",
    "int_parsing_size": lambda _: "超出整数范围",
    "int_from_float": lambda _: "须为整数",
    "int_type": lambda _: "须为整数",
    "float_parsing": lambda _: "须为数字",
    "string_type": lambda _: "须为文本",
    "string_too_long": lambda ctx: f"最长 {ctx['max_length']} 个字符",
    "string_too_short": lambda _: "不能为空",
    "too_short": lambda _: "不能为空",
    "string_pattern_mismatch": lambda _: "不能含控制字符",
    "dict_type": lambda _: "须为映射",
    "model_type": lambda _: "须为映射",
    "extra_forbidden": lambda _: "不是已知的项",
    "path_type": lambda _: "须为路径",
    "greater_than": lambda ctx: f"须大于 {_bound(ctx['gt'])}",
    "greater_than_equal": lambda ctx: f"不能小于 {_bound(ctx['ge'])}",
    "less_than": lambda ctx: f"须小于 {_bound(ctx['lt'])}",
    "less_than_equal": lambda ctx: f"不能大于 {_bound(ctx['le'])}",
    "value_error": lambda ctx: str(ctx["error"]),
}


def describe(error: ErrorDetails, variables: Mapping[str, Variable], origins: Mapping[str, str]) -> str:
    """Turn one pydantic error into one sentence for the operator; a secret's value is never part of it."""
    variable = _variable_at(error["loc"], variables)
    context: _Context = error.get("ctx", {})
    sentence = _SENTENCES.get(error["type"], _invalid)(context)
    if variable is None:
        return sentence  # a check over several variables: its text names them
    name = variable.name + _part_of(variable, error["loc"])
    if error["type"] == "missing":
        hint = f"：{variable.description}" if variable.description else ""
        return f"{name} 未设置{hint}"
    text = f"{name} {sentence}"
    if not variable.secret:
        text += f"，实际为 {_shown(error['input'])}"
    origin = origins.get(variable.name)
    return text if origin in (None, "环境变量") else f"{text}（来自{origin}）"


def _invalid(_context: _Context) -> str:
    return "无效"


def _variable_at(place: tuple[int | str, ...], variables: Mapping[str, Variable]) -> Variable | None:
    for variable in variables.values():
        if tuple(str(part) for part in place[: len(variable.path)]) == variable.path:
            return variable
    return None


def _part_of(variable: Variable, place: tuple[int | str, ...]) -> str:
    """Name the part of a value that has parts; their names are no secrets, even where the values are."""
    parts = ".".join(str(part) for part in place[len(variable.path) :])
    return f" 中的 {_printable(parts)}" if parts else ""


def _choices(context: _Context) -> list[str]:
    # pydantic writes the choices as English prose: 'all', 'leader' or 'consumer'
    return [part for part in str(context["expected"]).split("'") if part.strip(" ,") not in {"", "or"}]


def _bound(value: Any) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Enum):
        value = value.value
    return f'"{_printable(str(value))}"'


def _printable(text: str) -> str:
    shown = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
