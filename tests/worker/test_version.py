"""The version is the installed one."""

import subprocess
import sys
import tomllib
from pathlib import Path

from junhong_cmp.worker.version import program_version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_it_is_the_version_of_the_project() -> None:
    assert program_version() == tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]


def test_asking_for_it_waits_for_no_import() -> None:
    code = "import sys, junhong_cmp.worker.version; print('junhong_cmp.config' in sys.modules)"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout == "False\n"
