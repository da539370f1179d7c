import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.storage.errors import StorageKeyError
from junhong_cmp.storage.keys import check_key


@pytest.mark.parametrize("key", ["a", "imports/files/1/abc.csv", "..a", "a..b", "A-Z_9.tar.gz", "a" * 512])
def test_plain_relative_keys_pass(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "C:/x",
        "a\0b",
        "a b",
        "卡",
        "a" * 513,
        "a\n",
        "%2e%2e/x",
        "~root",
    ],
)
def test_keys_that_could_leave_the_root_are_refused(key: str) -> None:
    with pytest.raises(StorageKeyError, match="对象键无效"):
        check_key(key)


@given(st.text(max_size=40))
def test_an_accepted_key_never_climbs(key: str) -> None:
    try:
        check_key(key)
    except StorageKeyError:
        return
    assert ".." not in key.split("/")
    assert not key.startswith("/")
