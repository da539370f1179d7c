"""Sizes as a habit: files, functions, public names and parameters stay within their budgets."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "junhong_cmp"
GENERATED = {"asynq_pb2.py"}
MODULES = sorted(path for path in SRC.rglob("*.py") if path.name not in GENERATED)

MAX_FILE_LINES = 300
MAX_MEDIAN_FILE_LINES = 120
MAX_FUNCTION_LINES = 40
MAX_P90_FUNCTION_LINES = 25
MAX_PUBLIC_NAMES = 8
MAX_PARAMETERS = 6

# What may be larger, each with its reason.
MORE_PUBLIC_NAMES: dict[str, str] = {
    "gateway/errors.py": "one tree of errors, read as a whole",
    "asynq/errors.py": "one tree of errors, read as a whole",
    "polling/keys.py": "every Redis key of the package in one place",
}
MORE_PARAMETERS_IN: dict[str, str] = {
    "cli": "a command has one parameter an option",
}


def relative(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_file_is_within_its_budget(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE_LINES, f"{relative(path)} has {lines} lines: split it by duty"


def test_median_file_is_small() -> None:
    median = statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    assert median <= MAX_MEDIAN_FILE_LINES


def test_functions_are_within_their_budget() -> None:
    sizes = {
        f"{relative(path)}:{node.name}": code_lines(node) for path in MODULES for node in functions_of(path)
    }
    too_long = {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES}
    assert not too_long
    assert statistics.quantiles(sizes.values(), n=10)[-1] <= MAX_P90_FUNCTION_LINES


def test_modules_show_few_public_names() -> None:
    crowded = {}
    for path in MODULES:
        if relative(path) in MORE_PUBLIC_NAMES or path.name == "__init__.py":
            continue
        public = [
            node.name
            for node in tree_of(path).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
        ]
        if len(public) > MAX_PUBLIC_NAMES:
            crowded[relative(path)] = public
    assert not crowded


def test_functions_take_few_parameters() -> None:
    greedy = {}
    for path in MODULES:
        if path.relative_to(SRC).parts[0] in MORE_PARAMETERS_IN:
            continue
        for node in functions_of(path):
            names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            names = [name for name in names if name not in {"self", "cls"}]
            if len(names) > MAX_PARAMETERS:
                greedy[f"{relative(path)}:{node.name}"] = names
    assert not greedy
