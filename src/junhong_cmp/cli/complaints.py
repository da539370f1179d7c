"""What is wrong with a command line, in one Chinese sentence and how to go on."""

from typing import Final

from typer import TyperException
from typer._click.exceptions import (  # not exported by typer, and the only way to tell them apart
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoSuchOption,
    UsageError,
)
from typer.core import TyperGroup

from junhong_cmp.cli.usage import choices_of, label_of, limits_of, path_of, usage_line

_FIRST_CHINESE: Final = "\u4e00"
_PATH_REASONS: Final = {
    "does not exist.": "不存在",
    "is not readable.": "没有读取权限",
    "is not writable.": "没有写权限",
    "is a directory.": "是目录而不是文件",
    "is a file.": "是文件而不是目录",
}


def complaint(error: TyperException) -> str:
    """Return what to tell the user about a command line that was not understood."""
    sentence = f"错误：{_sentence(error)}"
    ctx = getattr(error, "ctx", None)
    return sentence if ctx is None else f"{sentence}\n{usage_line(ctx)}\n{path_of(ctx)} --help 显示说明"


def _sentence(error: TyperException) -> str:
    match error:
        case MissingParameter():
            return f"缺少 {_name(error)}"
        case BadParameter():
            is_of_the_whole = error.param is None and error.param_hint is None
            return _reason(error) if is_of_the_whole else f"{_name(error)} 的值无效：{_reason(error)}"
        case NoSuchOption():
            near = f"，是否应为 {'、'.join(sorted(error.possibilities))}" if error.possibilities else ""
            return f"没有选项 {error.option_name}{near}"
        case BadOptionUsage():
            lacks = "requires" in error.message
            return f"选项 {error.option_name} {'缺少它的值' if lacks else '不带值'}"
        case UsageError():
            return _about_the_whole(error)
    return error.format_message()


def _name(error: BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return error.param_hint if isinstance(error.param_hint, str) else "参数"
    return parameter.opts[0] if parameter.param_type_name == "option" else label_of(parameter)


def _reason(error: BadParameter) -> str:
    if any(char >= _FIRST_CHINESE for char in error.message):  # our own, from a command
        return error.message
    for ending, reason in _PATH_REASONS.items():
        if error.message.endswith(ending):
            return reason
    if choices := choices_of(error.param):
        return f"须为 {'、'.join(choices)} 之一"
    limits = limits_of(error.param)
    return f"须为数字，{limits}" if limits else "须为数字"


def _about_the_whole(error: UsageError) -> str:
    """Translate what has no class of its own; the subject stands in quotes or brackets."""
    message = error.message
    if message.startswith("No such command"):
        return f"没有命令 {_quoted(message)}{_commands(error)}"
    if message.startswith("Got unexpected extra"):
        return f"多余的参数：{message.rpartition('(')[2].rstrip(')')}"
    if message.startswith("Missing command"):
        return f"缺少命令{_commands(error)}"
    return message


def _commands(error: UsageError) -> str:
    ctx = error.ctx
    if ctx is None or not isinstance(ctx.command, TyperGroup):
        return ""
    return f"，可用的命令：{'、'.join(ctx.command.list_commands(ctx))}"


def _quoted(message: str) -> str:
    return message.partition("'")[2].rpartition("'")[0]
