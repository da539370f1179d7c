import pytest

from junhong_cmp.imports.formats import FileFormat, extension_note


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("卡.csv", FileFormat.TEXT),
        ("卡.TXT", FileFormat.TEXT),
        ("卡", FileFormat.TEXT),
        ("卡", FileFormat.XLS),
        ("卡.xlsx", FileFormat.XLSX),
        ("卡.XLSM", FileFormat.XLSX),
        ("卡.xls", FileFormat.XLS),
        ("卡.2026", FileFormat.XLSX),
    ],
)
def test_a_fitting_or_unknown_extension_says_nothing(name: str, found: FileFormat) -> None:
    assert extension_note(name, found) is None


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("卡.csv", FileFormat.XLSX, "文件扩展名是 .csv，内容却是 Excel 工作簿（.xlsx），已按内容读取"),
        ("卡.xls", FileFormat.TEXT, "文件扩展名是 .xls，内容却是 CSV 文本，已按内容读取"),
        ("卡.txt", FileFormat.XLS, "文件扩展名是 .txt，内容却是 Excel 97-2003 工作簿（.xls），已按内容读取"),
    ],
)
def test_a_name_that_promises_another_format_is_pointed_out(name: str, found: FileFormat, said: str) -> None:
    assert extension_note(name, found) == said
