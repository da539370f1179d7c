"""Which cards a command is about: numbers on the command line, or in a file."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from junhong_cmp.cards.iccid import IccidError, normalise
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.short_numbers import find_ambiguous
from junhong_cmp.cards.store import find_by_iccids
from junhong_cmp.cli.inspection import REFUSED
from junhong_cmp.db.pool import Conn
from junhong_cmp.errors import system_reason
from junhong_cmp.polling.rule_editor import RuleRefusedError

_STANDARD_INPUT: Final = "-"
_A_TIME: Final = 1000
_SHOWN: Final = 5

Numbers = Annotated[list[str] | None, typer.Argument(metavar="[ICCID]…", help="卡号，19 或 20 位")]
NumberFile = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="文件", help="从文件读取卡号，每行一个；- 为标准输入", show_default=False
    ),
]


def chosen_numbers(given: Sequence[str] | None, file: str | None) -> list[str]:
    """Return the numbers a user named, each once, in the order given.

    Raises:
        typer.BadParameter: given in both ways, or in none.
        typer.Exit: refused, and the user has been told why: the file can't be read or holds no number, or
            something given is no number of a card.

    """
    if bool(given) is (file is not None):
        raise typer.BadParameter("给出卡号，或用 --file 给出存放卡号的文件，二者选一")
    try:
        return _given(given or ()) if file is None else _listed(file)
    except RuleRefusedError as error:
        typer.echo(f"错误：{error}", err=True)
        raise typer.Exit(REFUSED) from error


def _given(texts: Sequence[str]) -> list[str]:
    if len(texts) == 1:
        try:
            return [normalise(texts[0]).value]
        except IccidError as error:
            raise RuleRefusedError(f"不是有效的 ICCID：{error.text}") from error
    return _checked((f"“{raw}”", raw) for raw in texts)


def _listed(file: str) -> list[str]:
    numbers = _checked((f"第 {line} 行", raw) for line, raw in _lines_of(file))
    if not numbers:
        raise RuleRefusedError(f"{_name_of(file)}中没有卡号")
    return numbers


async def cards_with(conn: Conn, numbers: Sequence[str]) -> list[Card]:
    """Return the live cards with these numbers, each once.

    Raises:
        RuleRefusedError: some have none, or do not say which of several; the text names the first of them.

    """
    found: dict[int, Card] = {}
    missing: list[str] = []
    unclear: set[str] = set()
    for start in range(0, len(numbers), _A_TIME):
        part = numbers[start : start + _A_TIME]
        cards = await find_by_iccids(conn, part)
        missing += [number for number in part if number not in cards]
        unclear |= await find_ambiguous(conn, part)
        found.update((card.id, card) for card in cards.values())
    if missing:
        raise RuleRefusedError(
            f"没有 ICCID 为 {missing[0]} 的卡"
            if len(numbers) == 1
            else f"{len(missing)} 个卡号没有对应的卡：{some_of(missing)}"
        )
    if unclear:
        raise RuleRefusedError(
            f"{len(unclear)} 个 19 位卡号对应不止一张卡，请给出 20 位：{some_of(sorted(unclear))}"
        )
    return list(found.values())


def some_of(names: Sequence[str]) -> str:
    """Return the first of the names, and that there are more."""
    return "、".join(names[:_SHOWN]) + (" 等" if len(names) > _SHOWN else "")


def portions(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the ids in portions that one transaction may lock without making polls wait."""
    for start in range(0, len(ids), _A_TIME):
        yield ids[start : start + _A_TIME]


def _checked(named: Iterable[tuple[str, str]]) -> list[str]:
    numbers: dict[str, None] = {}
    faults: list[str] = []
    for name, raw in named:
        try:
            numbers[normalise(raw).value] = None
        except IccidError as error:
            faults.append(f"{name}：{error.text}")
    if faults:
        raise RuleRefusedError(f"{len(faults)} 个卡号无效：{some_of(faults)}")
    return list(numbers)


def _lines_of(file: str) -> Iterator[tuple[int, str]]:
    """Yield what is in the file by its line; blank lines and a title count as lines only.

    A cell may stand in quotes: a column cut out of an export is such a file.
    """
    try:
        data = sys.stdin.buffer.read() if file == _STANDARD_INPUT else Path(file).read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuleRefusedError(f"{_name_of(file)}不是 UTF-8 文本") from error
    except OSError as error:
        raise RuleRefusedError(f"文件无法读取：{file}：{system_reason(error)}") from error
    for line, raw in enumerate(text.splitlines(), 1):
        value = raw.strip()
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        if value and not (line == 1 and value.upper() == "ICCID"):
            yield line, value


def _name_of(file: str) -> str:
    return "标准输入" if file == _STANDARD_INPUT else f"文件 {file} "
