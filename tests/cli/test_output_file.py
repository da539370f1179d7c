"""Where a file a user asks for cannot be, and what the user is told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from junhong_cmp.cli.output_file import refuse_unwritable

NOBODY = 65534


def refusal(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as ended:
        refuse_unwritable(path, "--out")
    assert ended.value.exit_code == 1
    return capsys.readouterr().err


def test_a_place_that_can_be_written_is_let_through(tmp_path: Path) -> None:
    for path in (tmp_path / "new.csv", Path("new.csv"), Path("/dev/stdout"), Path("/dev/full")):
        refuse_unwritable(path, "--out")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named_with_the_command_that_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "of the month"
    said = refusal(folder / "cards.csv", capsys)
    assert f"--out 无法写入 {folder / 'cards.csv'}：文件夹 {folder} 不存在" in said
    assert f"mkdir -p '{folder}'" in said


def test_other_wrong_places_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "是文件夹而不是文件" in refusal(tmp_path, capsys)
    assert "不是文件夹" in refusal(tmp_path / "file" / "cards.csv", capsys)
    assert "路径中有一段不是目录" in refusal(tmp_path / "file" / "deep" / "cards.csv", capsys)
    assert "符号链接成环" in refusal(tmp_path / "loop" / "cards.csv", capsys)
    assert "名称过长" in refusal(tmp_path / ("n" * 300) / "cards.csv", capsys)


@contextmanager
def nobody() -> Iterator[None]:
    """Be a user who may not write everywhere, in the eyes of access(2)."""
    user = os.getuid()
    os.setreuid(user or NOBODY, -1)
    try:
        yield
    finally:
        os.setreuid(user, -1)


def test_a_closed_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    with nobody():
        assert "没有写权限" in refusal(tmp_path / "cards.csv", capsys)
