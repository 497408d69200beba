"""A function is one entry of a registry: nothing outside ``functions/`` lists names of functions, and entries are found."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS
from kquery_spark.functions.call_form import registered_names
from kquery_spark.functions.registry import functions, has_function
from kquery_spark.functions.special_forms import CastFunction, SpecialForm, TryFunction, special_forms

PACKAGE = Path(__file__).parents[2] / "kquery_spark"
FUNCTIONS = PACKAGE / "functions"
#: The fuzzer chooses what it writes queries with. The frontend of Substrait translates names of Substrait's functions.
NOT_CHECKED = {FUNCTIONS, PACKAGE / "fuzz", PACKAGE / "frontends" / "substrait"}
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if NOT_CHECKED.isdisjoint(path.parents))
#: Collections of words that are names of functions by chance.
ALLOWED = {
    "frontends/dataframe/builder.py": "kinds of joins: left and right",
    "spark_bridge/plan/internal_values.py": "names of types: array and map",
    "spark_bridge/ui/sql_executions.py": "kinds of metrics: sum and size",
}
#: Functions with the names of types (``int(x)``) do not count: types are listed in many places.
NAMES = registered_names() - {form.name for form in special_forms() if isinstance(form, CastFunction)}


def _words(node: ast.AST) -> Iterator[str]:
    """The strings of a collection that is written out: items, keys and values, or the words of a text that is split."""
    match node:
        case ast.Set(elts=items) | ast.List(elts=items) | ast.Tuple(elts=items):
            pass
        case ast.Dict(keys=keys, values=values):
            items = [*filter(None, keys), *values]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            yield from text.split()
            return
        case _:
            return
    yield from (
        item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )


def collections_of_names(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and names of each collection with two names of functions or more."""
    for node in ast.walk(ast.parse(text)):
        names = sorted(NAMES & set(_words(node)))
        if len(names) > 1:
            yield getattr(node, "lineno", 0), names


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_collection_of_function_names(path: Path) -> None:
    found = list(collections_of_names(path.read_text()))
    if path.relative_to(PACKAGE).as_posix() in ALLOWED:
        assert found, "it has none, so it need not be allowed"
    else:
        assert not found, "what is said of these functions is a field of their entries in functions/"


@pytest.mark.parametrize(
    "text",
    [
        'X = {"upper", "lower"}',
        'X = frozenset(("upper", "lower", "other"))',
        'X = {"upper": 1, "lower": 2}',
        'X = {"Upper": "upper", "Lower": "lower"}',
        'x in ["explode", "inline"]',
        'X = "upper lower".split()',
    ],
)
def test_collections_are_found(text: str) -> None:
    assert len(list(collections_of_names(text))) == 1


@pytest.mark.parametrize("text", ['X = {"upper", "other"}', '@handles("upper", "lower")\ndef f(): ...'])
def test_other_code_may_say_names(text: str) -> None:
    assert not list(collections_of_names(text))


def test_a_module_with_entries_is_found(tmp_path: Path) -> None:
    """Import the package as if the directory had one more module."""
    (tmp_path / "doubling.py").write_text(
        "from kquery_spark.functions.registry import Function, first_argument_type, register\n"
        "register(Function('doubled', None, first_argument_type))\n"
    )
    code = f"""
import importlib.util, sys, types
parent = sys.modules["kquery_spark"] = types.ModuleType("kquery_spark")
parent.__path__ = [{str(PACKAGE)!r}]
spec = importlib.util.spec_from_file_location(
    "kquery_spark.functions",
    {str(FUNCTIONS / "__init__.py")!r},
    submodule_search_locations=[{str(FUNCTIONS)!r}, {str(tmp_path)!r}],
)
package = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
print(sys.modules["kquery_spark.functions.registry"].has_function("doubled"))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"


def test_names_that_entries_refer_to_are_there() -> None:
    for entry in functions().values():
        related = (entry.operator.flipped, entry.operator.opposite)
        assert all(name == "" or name in functions() for name in related), entry.name
        assert {alias for alias, _ in entry.alias_calls} <= set(entry.aliases), entry.name
    for form in special_forms():
        assert not isinstance(form, TryFunction) or has_function(form.wrapped), form.name


def test_a_special_form_that_is_no_more_than_that_has_a_handler() -> None:
    plain = [form for form in special_forms() if type(form) is SpecialForm]
    missing = [name for form in plain for name in (form.name, *form.aliases) if CALLS.get(name) is None]
    assert plain
    assert not missing
