"""What ``junhong card`` does with the database."""

import asyncio
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import typer

from junhong_cmp.cards.model import Card, CardStatus, PollTopic
from junhong_cmp.cli.card_screen import print_dossier
from junhong_cmp.cli.import_desk import open_database
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.output_file import refuse_unwritable
from junhong_cmp.cli.service_errors import explained
from junhong_cmp.config import Settings
from junhong_cmp.errors import ExitCode
from junhong_cmp.exports.dossier import Dossier, load_dossier
from junhong_cmp.exports.errors import NobodyReadsError, NothingFoundError
from junhong_cmp.exports.export import CardExporter, ExportFormat
from junhong_cmp.exports.labels import STATUS_NAMES
from junhong_cmp.exports.selection import CardSelection

_EXIT_REFUSED: Final = 1
_ZONE: Final = "Asia/Shanghai"
_EXPORTING: Final = "无法导出"
_READING: Final = "无法读取卡"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """What the command line asks for; no ``out`` means standard output."""

    account_code: str | None
    status: str | None
    kind: str | None
    out: Path | None


def run_export(settings: Settings, order: ExportOrder) -> int:
    """Write the cards and return the exit code: 1 for an unknown account or a file that cannot be there."""
    selection = CardSelection(order.account_code, _status_of(order.status))
    kind = _format_of(order)
    if order.out is not None:
        refuse_unwritable(order.out, "--out")
    try:
        count = asyncio.run(_export(settings, selection, kind, order.out))
    except NothingFoundError as error:
        return _refused(error)
    except NobodyReadsError:
        # Who read has read enough (`| head`). Standard output is closed again at exit: let that be quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_REFUSED
    place = "标准输出" if order.out is None else order.out
    typer.echo(f"已导出 {count} 张卡：{place}", err=True)
    return int(ExitCode.CLEAN)


async def _export(settings: Settings, selection: CardSelection, kind: ExportFormat, out: Path | None) -> int:
    async with open_database(settings, _EXPORTING) as pool:
        exporter = CardExporter(pool, ZoneInfo(_ZONE))
        with explained(_EXPORTING):
            if out is not None:
                return await exporter.to_file(selection, kind, out)
            return await exporter.to_stream(selection, kind, sys.stdout.buffer)


def run_show(settings: Settings, number: str, *, limit: int, as_json: bool) -> int:
    """Print a card and return the exit code: 1 if there is no such card."""
    try:
        dossier = asyncio.run(_load(settings, number, limit))
    except NothingFoundError as error:
        return _refused(error)
    if as_json:
        print_json(asdict(dossier) | {"card": _by_name(dossier.card)})
    else:
        print_dossier(dossier)
    return int(ExitCode.CLEAN)


def _by_name(card: Card) -> dict[str, object]:
    """Return the card's fields by name; as a tuple it would become a list."""
    return card._asdict() | {topic.value: card.progress(topic)._asdict() for topic in PollTopic}


async def _load(settings: Settings, number: str, limit: int) -> Dossier:
    async with open_database(settings, _READING) as pool:
        with explained(_READING):
            return await load_dossier(pool, number, limit=limit)


def _refused(error: NothingFoundError) -> int:
    typer.echo(f"错误：{error}", err=True)
    return _EXIT_REFUSED


def _status_of(text: str | None) -> CardStatus | None:
    if text is None:
        return None
    for status in CardStatus:
        if text in {status.value, STATUS_NAMES[status]}:
            return status
    raise typer.BadParameter(f"状态只能为 {'、'.join(CardStatus)}", param_hint="--status")


def _format_of(order: ExportOrder) -> ExportFormat:
    named = order.kind or (order.out.suffix.lower().removeprefix(".") if order.out is not None else "csv")
    try:
        return ExportFormat(named.lower())
    except ValueError:
        hint = "--format" if order.kind else "--out"
        raise typer.BadParameter("格式只能为 csv 或 xlsx", param_hint=hint) from None
