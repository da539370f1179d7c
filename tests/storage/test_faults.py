import errno
import os
from pathlib import Path

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError
from tests.small_disk import names_in, small_disk

from junhong_cmp.storage.errors import StorageDeniedError, StorageFullError, StorageUnavailableError
from junhong_cmp.storage.faults import storage_fault
from junhong_cmp.storage.store import open_storage


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "x"), StorageFullError),
        (OSError(errno.EDQUOT, "x"), StorageFullError),
        (OSError(errno.EROFS, "x"), StorageDeniedError),
        (PermissionError(errno.EACCES, "x"), StorageDeniedError),
        (ConnectionResetError(errno.ECONNRESET, "x"), StorageUnavailableError),
        (PermissionDeniedError("403"), StorageDeniedError),
        (GenericError("Unable to copy: No space left on device (os error 28)"), StorageFullError),
        (GenericError("Error performing PUT: <Code>QuotaExceeded</Code>"), StorageFullError),
        (GenericError("error sending request"), StorageUnavailableError),
        (TimeoutError(), StorageUnavailableError),
    ],
)
def test_what_a_store_raises_says_what_to_do(error: Exception, kind: type[Exception]) -> None:
    assert type(storage_fault(error)) is kind


def test_only_the_first_line_is_repeated() -> None:
    assert "Authorization" not in str(storage_fault(GenericError("refused\nAuthorization: AWS4 canary")))


async def test_a_full_disk_is_full_and_keeps_what_it_had(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as folder:
        storage = open_storage(f"file://{folder}/objects")
        await storage.put("a/result.csv", b"old")
        with pytest.raises(StorageFullError, match="存储空间已满"):
            await storage.put("a/result.csv", os.urandom(200_000))
        assert await storage.get("a/result.csv") == b"old"
        assert names_in(folder / "objects" / "a") == ["result.csv"]
