"""Functions of columns by their SQL names, from the registries: ``max(col("x"))``, ``upper("name")``."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable

from kquery_spark.errors import PlanError
from kquery_spark.frontends.dataframe.column import Column, SortOrder, flat, lit, to_column
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.aggregate.windows import window_function
from kquery_spark.functions.aggregate_registry import aggregate_function, has_aggregate
from kquery_spark.functions.call_form import ALL_COLUMNS, CallForm, call_form, distinct_function
from kquery_spark.functions.nested.higher_order import higher_order_function
from kquery_spark.functions.registry import has_function
from kquery_spark.functions.special_forms import CastFunction, special_form

_lambdas = itertools.count()
_ORDERS = {
    "asc": Column.asc,
    "desc": Column.desc,
    "asc_nulls_first": Column.asc_nulls_first,
    "asc_nulls_last": Column.asc_nulls_last,
    "desc_nulls_first": Column.desc_nulls_first,
    "desc_nulls_last": Column.desc_nulls_last,
}


def is_function(name: str) -> bool:
    """Return whether SQL has a function called ``name``, in lower case."""
    if has_function(name) or has_aggregate(name) or window_function(name) is not None:
        return True
    form = special_form(name)
    return form is not None and not isinstance(form, CastFunction)


def call_form_of(name: str) -> CallForm:
    """Return how a DataFrame writes calls of PySpark's function ``name``."""
    return call_form(name) if distinct_function(name) is None else ALL_COLUMNS


def named_function(name: str) -> Callable[..., Column | SortOrder] | None:
    """A Python function that builds calls of the SQL function ``name``; None if SQL has no such function.

    As in PySpark, some arguments may be columns' names (the first, and all of ``coalesce``, ``concat`` and their
    like); other strings and values are constants.
    """
    spelled = name.rstrip("_")
    if spelled == "column":
        return to_column
    if spelled in _ORDERS:
        return _order(spelled)
    function = distinct_function(spelled) or spelled
    always_distinct = function != spelled
    if not is_function(function):
        return None
    form = call_form_of(spelled)

    def build(*arguments: object, distinct: bool = False, ignorenulls: bool = False) -> Column:
        if form.columns_from is not None:
            arguments = (*arguments[: form.columns_from], *flat(arguments[form.columns_from :]))
        nodes = [_node(spelled, form, index, argument) for index, argument in enumerate(arguments)]
        if not nodes and has_aggregate(spelled) and aggregate_function(spelled).takes_star:
            nodes = [ast.Star()]
        if form.trims and len(nodes) == 2:
            # PySpark passes the string first and the characters second; SQL's plain call has the reverse order
            return Column(ast.Trim(form.trims, nodes[1], nodes[0]))
        nulls = "IGNORE" if ignorenulls else None
        return Column(ast.Call((function,), tuple(nodes), distinct=distinct or always_distinct, nulls=nulls))

    build.__name__ = name
    build.__doc__ = f"SQL's ``{function}``; which strings are columns' names is as in PySpark."
    return build


def _node(function: str, form: CallForm, index: int, argument: object) -> ast.Expression:
    if isinstance(argument, SortOrder):
        raise PlanError(f"{function}() takes no sort order")
    if callable(argument) and not isinstance(argument, Column):
        return _lambda(function, argument)
    by_name = index in form.columns if form.columns_from is None else index >= form.columns_from
    if isinstance(argument, str) and by_name:
        return to_column(argument).node
    return lit(argument).node


def _lambda(function: str, body: Callable[..., object]) -> ast.Lambda:
    """Convert a Python function of columns to a SQL lambda, with parameter names that columns are unlikely to have."""
    if higher_order_function(function) is None:
        raise PlanError(f"{function}() takes columns and constants, not a Python function")
    parameters = inspect.signature(body).parameters.values()
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        raise PlanError(f"the function that {function}() is given must have positional parameters only")
    names = tuple(f"{p.name} of lambda {next(_lambdas)}" for p in parameters)
    value = body(*(Column(ast.Name((name,))) for name in names))
    if not isinstance(value, Column):
        raise PlanError(f"the function that {function}() is given must return a column, not {value!r}")
    return ast.Lambda(names, value.node)


def _order(name: str) -> Callable[..., SortOrder]:
    def build(column: Column | str) -> SortOrder:
        return _ORDERS[name](to_column(column))

    build.__name__ = name
    build.__doc__ = f"A sort key: ``col(...).{name}()``."
    return build
