import hashlib
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from junhong_cmp.storage.errors import ObjectMissingError, StorageKeyError, StorageUnavailableError
from junhong_cmp.storage.store import Storage, open_storage


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return open_storage(f"file://{tmp_path}/objects" if request.param == "file" else "memory://")


async def test_what_was_put_is_got_and_replaced(storage: Storage) -> None:
    await storage.put("a/b.csv", b"one")
    await storage.put("a/b.csv", b"two")
    assert await storage.get("a/b.csv") == b"two"
    assert await storage.exists("a/b.csv")


async def test_a_file_is_put_by_its_path(storage: Storage, tmp_path: Path) -> None:
    source = tmp_path / "cards.csv"
    source.write_bytes(b"ICCID\n")
    await storage.put("cards.csv", source)
    assert await storage.get("cards.csv") == b"ICCID\n"


async def test_a_stream_comes_in_small_pieces_and_whole(storage: Storage) -> None:
    data = bytes(range(256)) * 4096
    await storage.put("big", data)
    digest, largest = hashlib.sha256(), 0
    async for piece in storage.stream("big", chunk_bytes=10_000):
        digest.update(piece)
        largest = max(largest, len(piece))
    assert digest.digest() == hashlib.sha256(data).digest()
    assert largest <= 10_000


async def test_an_empty_object_streams_nothing(storage: Storage) -> None:
    await storage.put("empty", b"")
    assert [piece async for piece in storage.stream("empty")] == []


async def test_a_missing_object_is_said_to_be_missing(storage: Storage) -> None:
    assert not await storage.exists("nope")
    with pytest.raises(ObjectMissingError):
        await storage.get("nope")
    with pytest.raises(ObjectMissingError):
        _ = [piece async for piece in storage.stream("nope")]


async def test_deleting_twice_is_fine(storage: Storage) -> None:
    await storage.put("x", b"1")
    await storage.delete("x")
    await storage.delete("x")
    assert not await storage.exists("x")


async def test_every_method_checks_the_key(storage: Storage) -> None:
    for call in (
        storage.put("../x", b""),
        storage.get("../x"),
        storage.exists("../x"),
        storage.delete("../x"),
    ):
        with pytest.raises(StorageKeyError):
            await call
    with pytest.raises(StorageKeyError):
        _ = [piece async for piece in storage.stream("../x")]
    with pytest.raises(StorageKeyError):
        storage.locate("../x")


async def test_a_symbolic_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x")
    storage = open_storage(f"file://{tmp_path}/objects")
    (tmp_path / "objects" / "folder").symlink_to(outside)
    (tmp_path / "objects" / "file").symlink_to(outside / "secret")
    for key in ("folder/secret", "file"):
        with pytest.raises(StorageKeyError, match="符号链接"):
            await storage.get(key)


async def test_a_folder_that_went_away_may_come_back(tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/objects")
    await storage.put("x", b"1")
    (tmp_path / "objects").rename(tmp_path / "elsewhere")
    for call in (storage.get("x"), storage.put("x", b"2"), anext(storage.stream("x"))):
        with pytest.raises(StorageUnavailableError, match=r"本地存储目录不存在：.*，可能没有挂载"):
            await call
    (tmp_path / "elsewhere").rename(tmp_path / "objects")
    assert await storage.get("x") == b"1"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: (path / "deeper").mkdir(parents=True)])
async def test_what_is_no_file_is_neither_opened_nor_replaced(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    storage = open_storage(f"file://{tmp_path}/objects")
    make(tmp_path / "objects" / "x")
    for call in (storage.get("x"), storage.put("x", b""), storage.delete("x")):
        with pytest.raises(StorageKeyError, match="目录、管道或设备"):
            await call


async def test_local_objects_are_private(tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/objects")
    await storage.put("a/b", b"1")
    assert stat.S_IMODE((tmp_path / "objects").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "objects" / "a" / "b").stat().st_mode) == 0o600
    assert storage.locate("a/b") == str(tmp_path / "objects" / "a" / "b")


async def test_an_unreachable_service_is_unavailable_and_leaks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    url = "s3://bucket/prefix?endpoint=http://127.0.0.1:1&allow_http=true&region=cn-north-1"
    storage = open_storage(url, timeout=timedelta(seconds=1))
    with pytest.raises(StorageUnavailableError, match="对象存储暂不可用") as caught:
        await storage.get("x")
    assert "canary" not in str(caught.value)
    assert storage.locate("x") == "s3://bucket/prefix/x"
