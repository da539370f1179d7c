from datetime import timedelta
from pathlib import Path

import pytest

from junhong_cmp.storage.errors import StorageUnavailableError, StorageUrlError
from junhong_cmp.storage.location import open_store

TIMEOUT = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "类型不受支持"),
        ("/var/lib/cards", "类型不受支持"),
        ("http://example.com/x", "类型不受支持"),
        ("gs://bucket", "类型不受支持"),
        ("file://host/x", "本地存储 URL 无效"),
        ("file:relative", "本地存储 URL 无效"),
        ("s3:///x", "缺少桶名"),
        ("s3://bucket?endpiont=x", "未知参数：endpiont"),
        ("s3://id:secret@bucket/x", "不允许包含账号或密码"),
    ],
)
def test_a_bad_url_is_refused_with_its_reason(url: str, reason: str) -> None:
    with pytest.raises(StorageUrlError, match=reason) as caught:
        open_store(url, timeout=TIMEOUT)
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 78


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    _, root = open_store(f"file://{tmp_path}/a%20b/c", timeout=TIMEOUT)
    assert root == tmp_path / "a b" / "c"
    assert root.is_dir()


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailableError, match="本地存储目录无法使用"):
        open_store(f"file://{tmp_path}/file/sub", timeout=TIMEOUT)
