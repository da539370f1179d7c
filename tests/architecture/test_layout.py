"""Rules of the layout that an import graph does not show."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "junhong_cmp"
MODULES = sorted(path for path in SRC.rglob("*.py") if path.name != "asynq_pb2.py")
SCRIPTS = sorted(SRC.rglob("*.lua"))
VAGUE_NAMES = {"utils", "util", "common", "helpers", "misc"}
TESTS_OUTSIDE_THE_MIRROR = {
    "architecture",
    "scenarios",
    "interop",
    "chaos",
    "fakes",
    "docs",
    "end_to_end",
    "simulation",
}


def relative(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def test_no_module_has_a_vague_name() -> None:
    assert not [path for path in SRC.rglob("*") if path.stem in VAGUE_NAMES]


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_redis_keys_are_built_in_keys_files_only(path: Path) -> None:
    if path.name == "keys.py":
        return
    built = re.findall(r"""f?["'](?:asynq|polling):\{""", path.read_text(encoding="utf-8"))
    assert not built, f"{relative(path)} builds a Redis key of its own"


@pytest.mark.parametrize("path", SCRIPTS, ids=relative)
def test_every_script_has_its_header(path: Path) -> None:
    header = "\n".join(
        line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("--")
    )
    for part in ("KEYS", "ARGV", "Returns", "Atomic"):
        assert re.search(part, header, re.IGNORECASE), f"{relative(path)}: the header does not say {part}"


def test_tests_mirror_the_source() -> None:
    strays = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT / "tests").parent
        if place.parts and place.parts[0] not in TESTS_OUTSIDE_THE_MIRROR and not (SRC / place).is_dir():
            strays.append(path.relative_to(ROOT).as_posix())
    assert not strays


def test_no_test_file_is_a_library() -> None:
    borrowed = {
        (path.relative_to(ROOT).as_posix(), node.module)
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and re.match(r"tests\.(\w+\.)*test_", node.module or "")
    }
    assert not borrowed, "what tests share belongs into a module of its own or a conftest.py"


def test_every_exception_from_a_rule_has_its_reason() -> None:
    exception = re.compile(r"# (noqa|type: ignore)\b(?!: [A-Z]+\d+(, [A-Z]+\d+)* - \w|\[[\w-]+\] +# \w)")
    without = [
        f"{path.relative_to(ROOT)}:{number}"
        for place in ("src", "tests", "benchmarks")
        for path in (ROOT / place).rglob("*.py")
        if ".venv" not in path.parts and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if exception.search(line)
    ]
    assert not without


def test_no_lock_file_records_where_packages_came_from() -> None:
    for lock in (ROOT / "requirements.lock", ROOT / "benchmarks" / "requirements.lock"):
        assert "://" not in lock.read_text(encoding="utf-8")
    assert not [name for name in ("poetry.lock",) if (ROOT / name).exists()]
