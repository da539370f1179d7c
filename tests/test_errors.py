"""What the operating system refuses is told in Chinese."""

import errno
import os
import re
from pathlib import Path

import pytest

from junhong_cmp.errors import system_reason


@pytest.mark.parametrize("name", ["missing", "folder", "a" * 300, "file/below"])
def test_a_refused_path_has_a_chinese_reason(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Errno") as caught:
        (tmp_path / name).read_bytes()
    reason = system_reason(caught.value)
    assert re.search(r"[一-鿿]", reason)
    assert os.strerror(caught.value.errno or 0) not in reason


def test_an_unforeseen_reason_keeps_its_number() -> None:
    assert system_reason(OSError(errno.ENXIO, "No such device")) == "系统错误 6（No such device）"
