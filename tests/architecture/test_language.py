"""What users read is Chinese; what developers read is English; nothing is left half-said."""

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "junhong_cmp"
MODULES = sorted(path for path in SRC.rglob("*.py") if path.name != "asynq_pb2.py")
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
CJK = re.compile(r"[一-鿿]")
LOGGER_NAMES = {"log", "logger", "_log", "_logger"}


def relative(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def is_log_call(node: ast.AST) -> bool:
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr not in LOG_METHODS
    ):
        return False
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return name in LOGGER_NAMES


def literal_text(node: ast.expr) -> str | None:
    """The text of a string literal or the constant parts of an f-string; None if it is neither."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value
            for part in node.values
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
    return None


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_log_sentences_are_chinese(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and is_log_call(node) and node.args:
            text = literal_text(node.args[0])
            assert text is None or CJK.search(text), f"{relative(path)}:{node.lineno}: {text!r}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_comments_and_docstrings_are_english(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            english = sum(character.isascii() and character.isalpha() for character in docstring)
            chinese = len(CJK.findall(docstring))
            assert english >= chinese, f"{relative(path)}: a docstring is mostly Chinese: {docstring[:60]!r}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_nothing_is_left_open(path: Path) -> None:
    assert not re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "errors.py"], ids=relative)
def test_no_text_repeats_the_system_in_english(path: Path) -> None:
    assert ".strerror" not in path.read_text(encoding="utf-8"), "use errors.system_reason"
