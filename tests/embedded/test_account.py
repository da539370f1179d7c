"""The account PostgreSQL runs under, and what it can reach."""

import os
import pwd
from pathlib import Path

import pytest

from junhong_cmp.embedded.account import Account, alias_for, unprivileged_account
from junhong_cmp.errors import DependencyUnavailableError

STRANGER = Account("stranger", 54_321, 54_321)


def test_an_ordinary_user_stays_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert unprivileged_account() is None


def test_root_becomes_an_account_that_exists_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    account = unprivileged_account()
    assert account is not None
    assert account.uid == pwd.getpwnam(account.name).pw_uid != 0


def test_a_machine_without_such_an_account_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(name: str) -> pwd.struct_passwd:
        raise KeyError(name)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", nobody)
    with pytest.raises(DependencyUnavailableError, match="非特权系统账号"):
        unprivileged_account()


def test_one_closed_folder_on_the_way_closes_all_below(data_folder: Path) -> None:
    below = data_folder / "a" / "b"
    below.mkdir(parents=True)
    assert STRANGER.can_enter(below)
    below.parent.chmod(0o700)
    assert not STRANGER.can_enter(below)
    assert Account("us", os.geteuid(), os.getegid()).can_enter(below)
    below.parent.chmod(0o710)
    assert Account("group", 54_321, below.parent.stat().st_gid).can_enter(below)
    below.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_taken_over_is_the_accounts_alone(data_folder: Path) -> None:
    STRANGER.take_over(data_folder / "pg")
    status = (data_folder / "pg").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (STRANGER.uid, STRANGER.gid, 0o700)


def test_a_name_is_lent_only_to_who_has_none() -> None:
    assert alias_for(os.geteuid()) is None
    alias = alias_for(STRANGER.uid)
    assert alias
    assert pwd.getpwuid(alias).pw_name
