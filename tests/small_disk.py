"""A file system so small that it is soon full."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system with room for ``size`` at ``folder``; skips the test where that is not allowed."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("there is no mount here")
    folder.mkdir()
    words = [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run([umount, str(folder)], check=True)


def names_in(folder: Path) -> list[str]:
    """The names of what is in ``folder``."""
    return sorted(entry.name for entry in folder.iterdir())
