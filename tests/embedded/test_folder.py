"""The data folder: one run at a time, and a clear word when it cannot be used."""

import os
import shutil
import stat
from collections import namedtuple
from pathlib import Path

import pytest

from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.errors import ConfigError, DependencyUnavailableError, ExitCode

Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - shutil's own type has no name


def test_the_folder_is_made_with_its_parts_and_opens_again_after_closing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    folder.open(mode=0o700)
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    assert folder.logs.is_dir()
    assert folder.storage.is_dir()
    folder.close()
    folder.close()
    folder.open(mode=0o700)
    folder.close()


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.open(mode=0o700)
    with pytest.raises(DependencyUnavailableError, match=rf"进程 {os.getpid()}") as caught:
        second.open(mode=0o700)
    assert caught.value.exit_code == ExitCode.DEPENDENCY_UNAVAILABLE
    first.close()
    second.open(mode=0o700)
    second.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_write_permission_is_a_configuration_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="没有写权限"):
        DataFolder(tmp_path / "data").open(mode=0o700)
    tmp_path.chmod(0o700)


def test_a_read_only_place_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"不可用|没有写权限") as caught:
        DataFolder(Path("/proc/junhong")).open(mode=0o700)
    assert caught.value.exit_code == ExitCode.CONFIGURATION


def test_a_path_through_a_file_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(ConfigError, match=r"路径中有一段不是目录.*--data-dir"):
            DataFolder(place).open(mode=0o700)


def test_a_name_that_is_too_long_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"路径过长.*--data-dir"):
        DataFolder(tmp_path / ("x" * 300)).open(mode=0o700)


def test_a_full_disk_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: Usage(10**9, 10**9, 5 * 1024**2))
    folder = DataFolder(tmp_path)
    with pytest.raises(DependencyUnavailableError, match=r"只剩 5 MiB.*腾出空间"):
        folder.open(mode=0o700)
    monkeypatch.undo()
    folder.open(mode=0o700)  # the failed attempt held nothing
    folder.close()
