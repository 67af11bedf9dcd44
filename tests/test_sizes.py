"""Limits of size: modules of 350 lines, functions of 60 lines and 6 parameters, test modules of 450 lines."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("protocols", "secure_kg", "launch", "benchmarks")
LINES_OF_MODULE, LINES_OF_TESTS, LINES_OF_FUNCTION, PARAMETERS = 350, 450, 60, 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Every module below the folders: its path, and its text."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


@cache
def functions(source: str) -> list[Function]:
    """Kept, because several rules ask for them."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, Function)]


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    """How many a caller may give; `self` and `cls` do not count."""
    listed = function.args
    own = [*listed.posonlyargs, *listed.args][:1]
    bound = bool(own) and own[0].arg in ("self", "cls")
    return len(listed.posonlyargs) + len(listed.args) + len(listed.kwonlyargs) - bound


def long_modules(limit: int, *folders: str) -> set[str]:
    return {path for path, source in sources(*folders) if source.count("\n") > limit}


def functions_beyond(limit: int, measure: Callable[[Function], int]) -> set[str]:
    return {
        f"{path}: {function.name}"
        for path, source in sources(*PACKAGES)
        for function in functions(source)
        if measure(function) > limit
    }


def test_modules_are_short() -> None:
    assert long_modules(LINES_OF_MODULE, *PACKAGES) == set()


def test_test_modules_are_short() -> None:
    assert long_modules(LINES_OF_TESTS, "tests") == set()


def test_functions_are_short() -> None:
    assert functions_beyond(LINES_OF_FUNCTION, lines) == set()


def test_functions_take_few_parameters() -> None:
    assert functions_beyond(PARAMETERS, parameters) == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, /, b, *, c): ...", 3),
        ("def f(self, a, *rest, **named): ...", 1),
        ("def f(cls, /): ...", 0),
        ("async def f(a, b=1): ...", 2),
    ],
)
def test_parameters_are_counted_as_a_caller_sees_them(source: str, expected: int) -> None:
    (function,) = functions(source)
    assert parameters(function) == expected


def test_lines_are_counted_from_the_name_to_the_end() -> None:
    (function,) = functions("@decorated\ndef f():\n    a = 1\n\n    return a\n")
    assert lines(function) == 4
