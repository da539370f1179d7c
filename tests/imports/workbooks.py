"""Workbooks for tests, written part by part, so that every digit and every oddity is ours.

A cell is text, None for no cell, or a mapping: ``{number: "8.98605E+19"}`` (digits as they shall stand in
the file), ``{formula: "A1&A2", cached: "89"}``, ``{error: "#N/A"}``, ``{boolean: "1"}``,
``{inline: "x"}``, ``{date: "46023"}`` (a number of days, shown as a date).
"""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import xlwt  # type: ignore[import-untyped] # the only writer of this format, long without changes

Cell: TypeAlias = str | Mapping[str, str] | None
Sheets: TypeAlias = Mapping[str, Sequence[Sequence[Cell]]]

_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_KIND: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS: Final = "http://schemas.openxmlformats.org/package/2006/relationships"

_FORMATS: Final = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'


def xlsx(
    sheets: Sheets, *, hidden: Sequence[str] = (), parts: Mapping[str, str | bytes] | None = None
) -> bytes:
    """An XLSX workbook; ``parts`` replaces or adds parts by name."""
    return archive(xlsx_parts(sheets, hidden=hidden) | dict(parts or {}))


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)
    return out.getvalue()


def xlsx_parts(sheets: Sheets, *, hidden: Sequence[str] = ()) -> dict[str, str | bytes]:
    """The parts of an XLSX workbook, text in shared strings as Excel has it."""
    strings: dict[str, int] = {}
    entries, relations = [], []
    parts: dict[str, str | bytes] = {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        state = ' state="hidden"' if name in hidden else ""
        entries.append(f'<sheet name={quoteattr(name)} sheetId="{number}"{state} r:id="rId{number}"/>')
        relations.append(_relation(f"rId{number}", "worksheet", f"worksheets/sheet{number}.xml"))
        parts[f"xl/worksheets/sheet{number}.xml"] = sheet_part(rows, strings)
    relations.append(_relation("rIdS", "sharedStrings", "sharedStrings.xml"))
    relations.append(_relation("rIdF", "styles", "styles.xml"))
    items = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in strings)
    sheet_list = f"<sheets>{''.join(entries)}</sheets>"
    return parts | {
        "_rels/.rels": _relations([_relation("rId1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_KIND}">{sheet_list}</workbook>',
        "xl/_rels/workbook.xml.rels": _relations(relations),
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">{_FORMATS}</styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{items}</sst>',
    }


def sheet_part(rows: Sequence[Sequence[Cell]], strings: dict[str, int]) -> str:
    """The XML of one worksheet; its texts are added to ``strings``."""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(
            _xlsx_cell(f"{column_name(at)}{number}", cell, strings)
            for at, cell in enumerate(row)
            if cell is not None
        )
        if cells:
            lines.append(f'<row r="{number}">{cells}</row>')
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def column_name(index: int) -> str:
    """The letters of a column, from 0."""
    letters = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        letters = chr(ord("A") + letter) + letters
        index -= 1
    return letters


def xls(sheets: Sheets, *, hidden: Sequence[str] = ()) -> bytes:
    """An XLS workbook with the same cells, as far as that format has them."""
    book = xlwt.Workbook(encoding="utf-8")
    for name, rows in sheets.items():
        sheet = book.add_sheet(name)
        sheet.visibility = int(name in hidden)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if cell is not None:
                    sheet.write(number, column, _xls_value(cell))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def encrypted() -> bytes:
    """What Excel makes of a workbook with a password: a compound file around an encrypted package."""
    data = bytearray(xls({"x": [["x"]]}))
    name = "Workbook".encode("utf-16-le")
    at = data.index(name + b"\0\0")
    longer = "EncryptedPackage".encode("utf-16-le")
    data[at : at + 64] = longer.ljust(64, b"\0")
    struct.pack_into("<H", data, at + 64, len(longer) + 2)
    return bytes(data)


def _xlsx_cell(reference: str, cell: str | Mapping[str, str], strings: dict[str, int]) -> str:
    if isinstance(cell, str):
        return f'<c r="{reference}" t="s"><v>{strings.setdefault(cell, len(strings))}</v></c>'
    ((kind, value), *more) = cell.items()
    cached = escape(dict(more).get("cached", ""))
    return {
        "number": f'<c r="{reference}"><v>{value}</v></c>',
        "date": f'<c r="{reference}" s="1"><v>{value}</v></c>',
        "error": f'<c r="{reference}" t="e"><v>{value}</v></c>',
        "boolean": f'<c r="{reference}" t="b"><v>{value}</v></c>',
        "inline": f'<c r="{reference}" t="inlineStr"><is><t>{escape(value)}</t></is></c>',
        "formula": f'<c r="{reference}" t="str"><f>{escape(value)}</f><v>{cached}</v></c>',
    }[kind]


def _xls_value(cell: str | Mapping[str, str]) -> Any:
    if isinstance(cell, str):
        return cell
    ((kind, value), *_) = cell.items()
    if kind == "formula":
        return xlwt.Formula(value)
    return {"number": float, "boolean": bool}.get(kind, str)(value)


def _relation(name: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{name}" Type="{_KIND}/{kind}" Target="{target}"/>'


def _relations(entries: Sequence[str]) -> str:
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(entries)}</Relationships>'
