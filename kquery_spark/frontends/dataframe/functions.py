"""Functions of columns by their SQL names, from the registries: ``max(col("x"))``, ``upper("name")``."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable

from kquery_spark.errors import PlanError
from kquery_spark.expr.lambdas import HIGHER_ORDER
from kquery_spark.frontends.dataframe.column import Column, SortOrder, flat, lit, to_column
from kquery_spark.frontends.sql.analyzer.expressions.calls import special_forms
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.aggregate_registry import aggregate_functions, has_aggregate
from kquery_spark.functions.registry import functions, has_function
from kquery_spark.functions.windows import window_function, window_functions

# Which strings are columns' names and not constants, as in PySpark: all but the leading ``n``, or the places listed.
# A function that is not here takes a column first.
_ALL = {
    **dict.fromkeys(
        ["array", "coalesce", "concat", "greatest", "hash", "least", "named_struct", "struct"], 0
    ),
    **dict.fromkeys(["xxhash64", "grouping_id", "count_distinct", "countDistinct"], 0),
    "concat_ws": 1,
    "elt": 0,
}
_PLACES = {
    **dict.fromkeys(
        ["add_months", "atan2", "contains", "corr", "covar_pop", "covar_samp", "date_add"], (0, 1)
    ),
    **dict.fromkeys(["date_diff", "date_sub", "datediff", "endswith", "equal_null", "find_in_set"], (0, 1)),
    **dict.fromkeys(
        ["hypot", "ifnull", "ilike", "left", "levenshtein", "like", "log", "ltrim", "max_by"], (0, 1)
    ),
    **dict.fromkeys(["min_by", "months_between", "nanvl", "nullif", "nvl", "pmod", "power", "pow"], (0, 1)),
    **dict.fromkeys(["repeat", "right", "rlike", "regexp", "regexp_like", "rtrim", "btrim"], (0, 1)),
    **dict.fromkeys(["startswith", "trim", "try_add", "try_divide", "try_mod", "try_multiply"], (0, 1)),
    **dict.fromkeys(["try_subtract", "try_element_at", "dateadd", "try_to_timestamp"], (0, 1)),
    **dict.fromkeys(["make_date", "nvl2", "position", "replace", "substring", "substr"], (0, 1, 2)),
    **dict.fromkeys(["date_part", "datepart", "date_trunc", "extract"], (1,)),
    **dict.fromkeys(
        ["array_except", "array_intersect", "array_repeat", "array_union", "bit_get", "getbit"], (0, 1)
    ),
    **dict.fromkeys(["arrays_overlap", "to_unix_timestamp"], (0, 1)),
    **dict.fromkeys(["sequence", "slice", "split_part"], (0, 1, 2)),
    "overlay": (0, 1, 2, 3),
    "make_timestamp": tuple(range(9)),
    "locate": (1,),
    "width_bucket": (0, 1, 2, 3),
    "split": (0, 2),
}
_SPELLED = {"countDistinct": "count", "count_distinct": "count", "sumDistinct": "sum", "sum_distinct": "sum"}
_lambdas = itertools.count()
# PySpark gives the text first and the characters second, SQL's plain call the other way round.
_TRIMS = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_ORDERS = {
    "asc": Column.asc,
    "desc": Column.desc,
    "asc_nulls_first": Column.asc_nulls_first,
    "asc_nulls_last": Column.asc_nulls_last,
    "desc_nulls_first": Column.desc_nulls_first,
    "desc_nulls_last": Column.desc_nulls_last,
}


def is_function(name: str) -> bool:
    """Whether SQL has a function called ``name``, in lower case."""
    known = has_function(name) or has_aggregate(name) or window_function(name) is not None
    return known or name in special_forms()


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
    function = _SPELLED.get(spelled, spelled)
    if not is_function(function):
        return None
    always_distinct = spelled in _SPELLED

    def build(*arguments: object, distinct: bool = False, ignorenulls: bool = False) -> Column:
        if spelled in _ALL:
            arguments = (*arguments[: _ALL[spelled]], *flat(arguments[_ALL[spelled] :]))
        nodes = [_node(spelled, index, argument) for index, argument in enumerate(arguments)]
        if spelled == "count" and not nodes:
            nodes = [ast.Star()]
        if function in _TRIMS and len(nodes) == 2:
            return Column(ast.Trim(_TRIMS[function], nodes[1], nodes[0]))
        if always_distinct and nodes == [ast.Name(("*",))]:
            nodes = [ast.Star()]
        nulls = "IGNORE" if ignorenulls else None
        return Column(ast.Call((function,), tuple(nodes), distinct=distinct or always_distinct, nulls=nulls))

    build.__name__ = name
    build.__doc__ = f"SQL's ``{function}``; which strings are columns' names is as in PySpark."
    return build


def _node(function: str, index: int, argument: object) -> ast.Expression:
    if isinstance(argument, SortOrder):
        raise PlanError(f"{function}() takes no sort order")
    if callable(argument) and not isinstance(argument, Column):
        return _lambda(function, argument)
    by_name = index >= _ALL[function] if function in _ALL else index in _PLACES.get(function, (0,))
    if isinstance(argument, str) and by_name:
        return to_column(argument).node
    return lit(argument).node


def _lambda(function: str, body: Callable[..., object]) -> ast.Lambda:
    """A Python function of columns as SQL's lambda; its parameters have names that no column has by chance."""
    if function not in HIGHER_ORDER:
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


def function_names() -> list[str]:
    """The names of all functions, sorted."""
    windows = {w.name for w in window_functions()}
    return sorted({*functions(), *aggregate_functions(), *windows, *special_forms()})
