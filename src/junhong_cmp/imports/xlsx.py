"""XLSX workbooks: which sheets there are, and their rows.

They are read by our own stream parser because the row rules need what readers of values hide: whether a
cell is a formula, and the digits of a number as they are written. External links are never followed: only
the parts named below are opened.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import IO, Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from junhong_cmp.imports.archive import Archive
from junhong_cmp.imports.cells import RawRow
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.xlsx_dates import DateCells, read_date_styles
from junhong_cmp.imports.xlsx_sheet import read_sheet
from junhong_cmp.imports.xlsx_strings import read_strings

_OTHER_KINDS: Final = (
    ("xl/workbook.bin", "这是 Excel 二进制工作簿（.xlsb），请另存为 .xlsx 或 CSV 后再导入"),
    ("word/document.xml", "这是 Word 文档，请提供 CSV 或 Excel 文件"),
    ("ppt/presentation.xml", "这是演示文稿，请提供 CSV 或 Excel 文件"),
    ("mimetype", "这是 OpenDocument 文件，请另存为 .xlsx 或 CSV 后再导入"),
)
_DEFAULT_BOOK: Final = "xl/workbook.xml"


class XlsxWorkbook:
    """An XLSX workbook lists its visible and hidden sheets and streams their rows."""

    def __init__(self, file: IO[bytes], limits: ImportLimits, workbook_limits: WorkbookLimits) -> None:
        self._limits = limits
        self._archive = Archive(file, workbook_limits)
        self._strings: list[str] = []
        self._dates: DateCells | None = None
        self._strings_part: str | None = None
        self._styles_part: str | None = None
        self._since_1904 = False
        self._parts: dict[str, str] = {}
        self.sheets: list[str] = []
        self.hidden: set[str] = set()
        self._read_directory()

    def rows(self, sheet: str) -> Iterator[RawRow]:
        """Yield the rows of a sheet that have content; raises FileRefusedError for a damaged one."""
        if self._dates is None:
            self._dates = self._read_shared()
        return read_sheet(self._archive.pieces(self._parts[sheet]), self._strings, self._limits, self._dates)

    def _read_shared(self) -> DateCells:
        """Read what all sheets refer to: their strings, and which numbers are dates."""
        if self._strings_part is not None:
            pieces = self._archive.pieces(self._strings_part)
            self._strings = read_strings(pieces, cell_chars=self._limits.cell_chars)
        styles = (
            {} if self._styles_part is None else read_date_styles(self._archive.pieces(self._styles_part))
        )
        return DateCells(styles, since_1904=self._since_1904)

    def _read_directory(self) -> None:
        for part, text in _OTHER_KINDS:
            if part in self._archive:
                raise FileRefusedError(text)
        book = self._book_part()
        if book not in self._archive:
            raise FileRefusedError("这是压缩文件，不是 Excel 工作簿；请解压出 CSV 或 Excel 文件后再导入")
        targets = self._relations(book)
        directory = self._archive.read(book)
        for sheet in _elements(directory, "sheet"):
            relation = next((value for key, value in sheet.items() if _local(key) == "id"), "")
            kind, part = targets.get(relation, ("", ""))
            if kind == "worksheet":
                name = sheet.get("name", "")
                self.sheets.append(name)
                self._parts[name] = part
                if sheet.get("state", "visible") != "visible":
                    self.hidden.add(name)
        properties = _elements(directory, "workbookPr")
        self._since_1904 = any(one.get("date1904") in {"1", "true"} for one in properties)
        self._strings_part = self._first_part(targets, "sharedStrings")
        self._styles_part = self._first_part(targets, "styles")

    def _first_part(self, targets: Mapping[str, tuple[str, str]], wanted: str) -> str | None:
        parts = [part for kind, part in targets.values() if kind == wanted]
        return parts[0] if parts and parts[0] in self._archive else None

    def _book_part(self) -> str:
        targets = self._relations("")
        books = [part for kind, part in targets.values() if kind == "officeDocument"]
        return books[0] if books else _DEFAULT_BOOK

    def _relations(self, part: str) -> Mapping[str, tuple[str, str]]:
        """Return, by id, the kind of each inner part that ``part`` refers to and its name."""
        folder, name = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        if relations not in self._archive:
            return {}
        return {
            one.get("Id", ""): (
                one.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, one.get("Target", ""))).lstrip("/"),
            )
            for one in _elements(self._archive.read(relations), "Relationship")
            if one.get("TargetMode", "Internal") == "Internal"
        }


def _elements(data: bytes, name: str) -> list[Element]:
    try:
        root = fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise FileRefusedError("工作簿含有 DOCTYPE 或实体定义，可能是恶意文件，已拒绝") from error
    except (ParseError, UnicodeError, LookupError, ValueError) as error:
        raise FileRefusedError("工作簿已损坏：XML 内容不完整或不合规，请重新导出") from error
    return [element for element in root.iter() if _local(str(element.tag)) == name]


def _local(name: str) -> str:
    return name.rpartition("}")[2]
