"""Only ``functions/`` compares the names of functions. Other packages read a field of the function's entry instead.

The test parses the package and looks for comparisons like ``call.function == "count"`` and ``match entry.name: case "sum"``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kquery_spark
from kquery_spark.functions.aggregate.windows import window_functions
from kquery_spark.functions.aggregate_registry import aggregate_functions
from kquery_spark.functions.registry import functions
from kquery_spark.functions.special_forms import CastFunction, special_forms

PACKAGE = Path(kquery_spark.__file__).parent
# Not checked: the fuzzer writes SQL, and the command line reads arguments.
CHECKED = sorted(p for p in PACKAGE.iterdir() if p.is_dir() and p.name not in ("functions", "fuzz", "cli"))
# Not checked either: it translates between the engine's functions and Substrait's, which have names in common.
TRANSLATION = PACKAGE / "frontends" / "substrait"
# Variables and attributes that hold names of functions.
NAME_VARIABLES = {"function", "name", "spelled", "written_name", "entry"}
# Names of functions that are also words of Spark's type names, JSON, or options of writers.
AMBIGUOUS_NAMES = {"array", "map", "struct", "mode", "e"}
NAMES = {
    *functions(),
    *aggregate_functions(),
    *(w.name for w in window_functions()),
    *(f.name for f in special_forms() if not isinstance(f, CastFunction)),
} - {f.name for f in special_forms() if isinstance(f, CastFunction)}


def comparisons(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and source of each place that compares a function's name with strings."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                found = any(_is_name_variable(a) for a in operands) and any(
                    _has_function_name(node, a) for a in operands
                )
            case ast.Match(subject=subject):
                found = _is_name_variable(subject) and any(
                    _has_function_name(subject, c.pattern) for c in node.cases
                )
            case ast.MatchClass():
                named = zip(node.kwd_attrs, node.kwd_patterns, strict=True)
                found = any(name == "function" and _strings(pattern) for name, pattern in named)
            case _:
                continue
        if found:
            yield node.lineno if not isinstance(node, ast.MatchClass) else node.cls.lineno, ast.unparse(node)


def _is_name_variable(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            return word in NAME_VARIABLES
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):  # name.lower(), name[0]
            return _is_name_variable(inner)
        case ast.Tuple(elts=parts):
            return any(map(_is_name_variable, parts))
    return False


def _strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def _has_function_name(holder: ast.AST, node: ast.AST) -> bool:
    attributes = {n.attr for n in ast.walk(holder) if isinstance(n, ast.Attribute)}
    strings = _strings(node)
    return bool(strings & NAMES - (set() if "function" in attributes else AMBIGUOUS_NAMES))


@pytest.mark.parametrize("directory", CHECKED, ids=lambda path: path.name)
def test_no_package_compares_function_names(directory: Path) -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {source}"
        for path in sorted(directory.rglob("*.py"))
        if TRANSLATION not in path.parents
        for line, source in comparisons(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "add a field to the function's entry, and read it instead: " + "; ".join(found)


@pytest.mark.parametrize(
    "source",
    [
        'call.function == "count"',
        'call.function in {"sum", "array"}',
        'entry.name != "percentile"',
        'name in ("first_value", "ntile")',
        'match call.function:\n    case "upper" | "lower":\n        pass',
        'match entry.name, len(args):\n    case "listagg", 2:\n        pass',
        'match expr:\n    case Call(function="map"):\n        pass',
    ],
)
def test_comparisons_are_found(source: str) -> None:
    assert len(list(comparisons(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source", ['kind == "array"', 'name == "id"', "call.function == other", "entry.name == key"]
)
def test_other_comparisons_are_allowed(source: str) -> None:
    assert not list(comparisons(ast.parse(source)))
