"""The Python of the how-to pages (``docs/adding-*.md``) is an excerpt of the package: the test compares syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs").glob("adding-*.md"))
_BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def snippets(page: Path) -> Iterator[ast.stmt]:
    for block in _BLOCK.findall(page.read_text("utf-8")):
        indentation = len(block) - len(block.lstrip(" "))
        lines = [line[indentation:] for line in block.splitlines()]
        yield from ast.parse("\n".join(lines)).body


@cache
def _package() -> list[ast.AST]:
    """Return the nodes of all modules that a snippet may show."""
    return [
        node
        for path in (ROOT / "kquery_spark").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Call)
    ]


def is_excerpt(snippet: ast.AST, source: ast.AST) -> bool:
    """Return whether a snippet shows a definition or a call of the source, with nothing that the source does not have.

    A function must be whole. A class may lack members, and a call may lack arguments or have ``...`` inside of them.
    """
    if isinstance(snippet, ast.FunctionDef):
        return ast.unparse(snippet) == ast.unparse(source)
    if isinstance(snippet, ast.ClassDef) and isinstance(source, ast.ClassDef):
        members = {ast.unparse(member) for member in source.body}
        head = (snippet.name, *map(ast.unparse, (*snippet.bases, *snippet.decorator_list)))
        source_head = (source.name, *map(ast.unparse, (*source.bases, *source.decorator_list)))
        return head == source_head and all(ast.unparse(member) in members for member in snippet.body)
    if isinstance(snippet, ast.Call) and isinstance(source, ast.Call):
        keywords = {keyword.arg: keyword.value for keyword in source.keywords}
        return (
            ast.unparse(snippet.func) == ast.unparse(source.func)
            and len(snippet.args) <= len(source.args)
            and all(map(_is_same_argument, snippet.args, source.args))
            and all(
                k.arg in keywords and _is_same_argument(k.value, keywords[k.arg]) for k in snippet.keywords
            )
        )
    return False


def _is_same_argument(snippet: ast.expr, source: ast.expr) -> bool:
    if any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(snippet)):
        return type(snippet) is type(source)
    if isinstance(snippet, ast.Call):
        return is_excerpt(snippet, source)
    return ast.unparse(snippet) == ast.unparse(source)


def _shown(statement: ast.stmt) -> ast.AST:
    """Return what a statement of a page shows: the call itself where it is assigned or stands alone."""
    if isinstance(statement, ast.Assign | ast.Expr):
        return statement.value
    return statement


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_are_in_the_package(page: Path) -> None:
    missing = [
        ast.unparse(snippet).splitlines()[0]
        for snippet in snippets(page)
        if not any(is_excerpt(_shown(snippet), source) for source in _package())
    ]
    assert missing == [], f"{page.name} shows code that the package does not have"


@pytest.mark.parametrize(
    ("snippet", "source", "expected"),
    [
        ("def f(x: int) -> int:\n    return x", "def f(x: int) -> int:\n    return x  # as it is", True),
        ("def f(x: int) -> int:\n    return x", "def f(x: int) -> int:\n    return x + 1", False),
        ("class A(B):\n    x: int", "class A(B):\n    x: int\n    y: int", True),
        ("class A(B):\n    x: str", "class A(B):\n    x: int\n    y: int", False),
        ("F('a', x=1)", "F('a', g, x=1, y=2)", True),
        ("F('a', x={1: 2, ...: 3})", "F('a', x={1: 2})", True),
        ("F('a', z=1)", "F('a', x=1)", False),
    ],
)
def test_an_excerpt_has_nothing_that_the_source_lacks(snippet: str, source: str, expected: bool) -> None:
    left, right = (_shown(ast.parse(text).body[0]) for text in (snippet, source))
    assert is_excerpt(left, right) is expected
