"""Which kind of file the bytes are: their content decides, never the name."""

from enum import StrEnum
from pathlib import PurePath
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError


class FileFormat(StrEnum):
    """A kind of card file; the value is the name shown to people."""

    TEXT = "CSV 文本"
    XLSX = "Excel 工作簿（.xlsx）"
    XLS = "Excel 97-2003 工作簿（.xls）"


START_BYTES: Final = 1024
"""How much of a file's start :func:`recognise_format` looks at."""

_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_REFUSED: Final = (
    (b"PK\x05\x06", "压缩文件是空的，请提供 CSV 或 Excel 文件"),
    (b"\x1f\x8b", "这是压缩文件，请解压出 CSV 或 Excel 文件后再导入"),
    (b"Rar!", "这是压缩文件，请解压出 CSV 或 Excel 文件后再导入"),
    (b"7z\xbc\xaf\x27\x1c", "这是压缩文件，请解压出 CSV 或 Excel 文件后再导入"),
    (b"%PDF", "这是 PDF 文件，请提供 CSV 或 Excel 文件"),
)
_MARKUP: Final = (b"<html", b"<!doctype", b"<table", b"<meta", b"<head", b"<?xml", b"<body", b"<style")
_EXTENSIONS: Final = {
    FileFormat.TEXT: {".csv", ".txt", ".tsv", ".tab"},
    FileFormat.XLSX: {".xlsx", ".xlsm"},
    FileFormat.XLS: {".xls"},
}


def recognise_format(start: bytes) -> FileFormat:
    """Return the format of a file that begins with ``start``.

    Raises:
        FileRefusedError: a kind of file that holds no rows we can read, with what to do about it.

    """
    if start.startswith(_ZIP):
        return FileFormat.XLSX
    if start.startswith(_OLE):
        return FileFormat.XLS
    for signature, text in _REFUSED:
        if start.startswith(signature):
            raise FileRefusedError(text)
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_MARKUP):
        # Many systems export a web page, or XML of Excel 2003, under the name of .xls.
        raise FileRefusedError("这是网页（HTML）或 XML 格式的表格，请用 Excel 打开并另存为 .xlsx 后再导入")
    return FileFormat.TEXT


def extension_note(name: str, found: FileFormat) -> str | None:
    """Return what to tell the operator if the file's name promises another format, else None."""
    extension = PurePath(name).suffix.lower()
    if extension in _EXTENSIONS[found] or extension not in set().union(*_EXTENSIONS.values()):
        return None
    return f"文件扩展名是 {extension}，内容却是 {found}，已按内容读取"
