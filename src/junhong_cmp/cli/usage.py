"""Help of the command line in Chinese: typer's own is English and cuts long Chinese lines off."""

from collections.abc import Iterator, Sequence
from enum import Enum
from shutil import get_terminal_size
from typing import Final, get_args

from rich.cells import cell_len
from typer._click import (
    Command,
    Context,
    HelpFormatter,
    Parameter,
)  # typer keeps the types of its own methods here
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_MAX_WIDTH: Final = 110
_MAX_LABEL: Final = 30
_NO_LINE_STARTS_WITH: Final = " ，。；：、）！？”"
_NO_LINE_ENDS_WITH: Final = "（“"
_WIDE: Final = 2  # cells of a Chinese character


class ChineseCommand(TyperCommand):
    """A Chinese command explains itself in Chinese, wrapped by what a terminal really shows."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the page that ``--help`` shows."""
        formatter.write(_page(self, ctx, ()))


class ChineseGroup(TyperGroup):
    """A Chinese group does the same for a command that has commands below it."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the page that ``--help`` shows."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        commands = [(name, command.help or "") for name, command in found if command is not None]
        formatter.write(_page(self, ctx, commands))


def usage_line(ctx: Context) -> str:
    """Return how the command of ``ctx`` is called."""
    arguments = [label_of(item) for item in ctx.command.get_params(ctx) if isinstance(item, TyperArgument)]
    rest = ["命令 …"] if isinstance(ctx.command, TyperGroup) else arguments
    return " ".join(["用法：" + path_of(ctx), "[选项]", *rest])


def path_of(ctx: Context) -> str:
    """Return the words that lead to the command of ``ctx``; one that goes unnamed adds none."""
    return " ".join(ctx.command_path.split())


def _page(command: Command, ctx: Context, commands: Sequence[tuple[str, str]]) -> str:
    parameters = command.get_params(ctx)
    arguments = [(label_of(item), _explain(item)) for item in parameters if isinstance(item, TyperArgument)]
    options = [(label_of(item), _explain(item)) for item in parameters if isinstance(item, TyperOption)]
    lines = [usage_line(ctx), "", f"  {command.help or ''}"]
    for title, rows in (("参数", arguments), ("命令", commands), ("选项", options)):
        if rows:
            lines += ["", f"{title}："]
            lines += _table(rows)
    return "\n".join(lines) + "\n"


def label_of(parameter: Parameter) -> str:
    """Return how help and complaints call an argument or option, with what it takes."""
    if isinstance(parameter, TyperArgument):
        return parameter.metavar or parameter.display_name_raw.upper()
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    takes_value = isinstance(parameter, TyperOption) and not parameter.is_flag
    return f"{names} {parameter.metavar or 'VALUE'}" if takes_value else names


def _explain(parameter: Parameter) -> str:
    if parameter.name == "help":
        return "显示本说明并退出"
    text = getattr(parameter, "help", None) or ""
    notes = [*_notes(parameter)]
    return f"{text}（{'；'.join(notes)}）" if notes else text


def _notes(parameter: Parameter) -> Iterator[str]:
    if parameter.required:
        yield "必填"
    if not isinstance(parameter, TyperOption):
        return
    if limits := limits_of(parameter):
        yield limits
    if parameter.show_default and not parameter.is_flag and parameter.default not in (None, ""):
        yield f"默认 {parameter.default}"
    if isinstance(parameter.envvar, str):
        yield f"环境变量 {parameter.envvar}"


def limits_of(parameter: Parameter | None) -> str:
    """Return what numbers a parameter takes, or an empty text."""
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if low is None:
        return "" if high is None else f"不大于 {high}"
    return f"不小于 {low}" if high is None else f"{low} 到 {high}"


def choices_of(parameter: Parameter | None) -> list[str]:
    """Return the words a parameter takes; none if it takes others too."""
    descriptor = getattr(parameter, "type_descriptor", None)
    annotation = getattr(descriptor, "annotation", None)
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    return [str(member.value) for kind in kinds if issubclass(kind, Enum) for member in kind]


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = min(get_terminal_size().columns, _MAX_WIDTH)
    indent = min(max(cell_len(label) for label, _ in rows), _MAX_LABEL) + 4
    for label, text in rows:
        first, *others = [*_wrapped(text, max(width - indent, 20))] or [""]
        if cell_len(label) + 4 > indent:
            yield f"  {label}"
            yield f"{' ' * indent}{first}"
        else:
            yield f"  {label}{' ' * (indent - 2 - cell_len(label))}{first}"
        yield from (f"{' ' * indent}{other}" for other in others)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Break ``text`` into lines of ``width`` cells, between Chinese characters but not in other words."""
    line = ""
    for piece in _pieces(text):
        if line and cell_len(line + piece.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += piece
    if line:
        yield line.rstrip()


def _pieces(text: str) -> Iterator[str]:
    """Yield what must stay together: a Chinese character with its punctuation, or a word with its space."""
    piece = ""
    for before, char in zip(f" {text}", text, strict=False):
        glued = char in _NO_LINE_STARTS_WITH or before in _NO_LINE_ENDS_WITH
        if piece and not glued and (before == " " or _WIDE in (cell_len(before), cell_len(char))):
            yield piece
            piece = ""
        piece += char
    if piece:
        yield piece
