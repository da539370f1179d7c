"""Socket folders: inside the data folder when it serves, else short, private and the same every time."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from junhong_cmp.embedded.account import Account
from junhong_cmp.embedded.sockets import SOCKET_PATH_BYTES, choose_socket_folder, private_folder
from junhong_cmp.errors import ConfigError

STRANGER = Account("stranger", 54_321, 54_321)


def test_a_short_path_is_taken_as_it_is(data_folder: Path) -> None:
    chosen = choose_socket_folder(data_folder / "run", None)
    assert chosen == data_folder / "run"
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700


def test_an_account_can_pass_but_not_list(data_folder: Path) -> None:
    chosen = choose_socket_folder(data_folder / "run", STRANGER)
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o711
    assert STRANGER.can_enter(chosen)


@pytest.mark.parametrize("closed", [False, True])
def test_a_long_or_closed_path_gets_a_short_one_that_stays_the_same(
    data_folder: Path, *, closed: bool
) -> None:
    parent = data_folder / ("p" if closed else "p" * 100)
    parent.mkdir(mode=0o700)
    account = STRANGER if closed else None
    chosen = choose_socket_folder(parent / "run", account)
    assert chosen == choose_socket_folder(parent / "run", account)
    assert len(os.fsencode(chosen / "pg" / ".s.PGSQL.5432")) <= SOCKET_PATH_BYTES
    assert parent not in chosen.parents
    shutil.rmtree(chosen)


def test_the_limit_counts_bytes_not_characters(data_folder: Path) -> None:
    parent = data_folder / ("物" * 30)
    parent.mkdir()
    chosen = choose_socket_folder(parent / "run", None)
    assert chosen.parent == Path(tempfile.gettempdir()).resolve()
    shutil.rmtree(chosen)


def test_a_name_somebody_else_holds_is_refused(data_folder: Path) -> None:
    (data_folder / "real").mkdir()
    (data_folder / "link").symlink_to(data_folder / "real")
    with pytest.raises(ConfigError, match="已被其他账号占用"):
        private_folder(data_folder / "link", mode=0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_accounts_folder_is_refused(data_folder: Path) -> None:
    (data_folder / "theirs").mkdir()
    os.chown(data_folder / "theirs", STRANGER.uid, STRANGER.gid)
    with pytest.raises(ConfigError, match="已被其他账号占用"):
        private_folder(data_folder / "theirs", mode=0o700)
