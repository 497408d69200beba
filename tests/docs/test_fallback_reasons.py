"""Every fallback reason is a lower-case clause without a period, because ``explain`` and the documents put it into a sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "kquery_spark"
_ERRORS = ("Unsupported", "UnsupportedQuery")
_PROPER_NOUNS = ("Arrow", "Delta", "Iceberg", "Java", "Parquet", "Python", "Spark", "Spark's")


def problems(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each reason that does not have the form, and what is wrong with it."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name not in _ERRORS:
            continue
        first, last = _ends(node.args[0])
        word = first.split(" ", 1)[0]
        if word.istitle() and word not in _PROPER_NOUNS:
            yield node.lineno, f"{word!r} starts with a capital letter"
        if last.endswith((".", "!", ";", ",", ":", " ")):
            yield node.lineno, f"the reason ends with {last[-1]!r}"


def _ends(reason: ast.expr) -> tuple[str, str]:
    """Return the literal strings at the beginning and at the end of a reason; empty if a value is there."""
    parts = reason.values if isinstance(reason, ast.JoinedStr) else [reason]
    ends = [part.value if isinstance(part, ast.Constant) else "" for part in (parts[0], parts[-1])]
    return str(ends[0]), str(ends[1])


def test_reasons_are_lower_case_clauses_without_a_period() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {problem}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, problem in problems(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "reason",
    [
        "'Arrays of maps are not supported'",
        "'arrays of maps are not supported.'",
        "f'{name} is not supported.'",
        "f'because of: '",
    ],
)
def test_the_check_finds_other_forms(reason: str) -> None:
    assert list(problems(f"raise Unsupported({reason})"))
    assert list(problems(f"raise errors.UnsupportedQuery({reason})"))


@pytest.mark.parametrize(
    "reason", ["'MAP columns are not supported'", "'Spark reads it'", "f'{name} has no kernel'"]
)
def test_the_check_accepts_the_form(reason: str) -> None:
    assert not list(problems(f"raise Unsupported({reason})"))
