"""Functions for columns, by their SQL names, made from the registries: ``max(col("x"))``, ``upper("name")``."""

from __future__ import annotations

from collections.abc import Callable

from kquery_spark.frontends.dataframe.column import Column, lit, to_column
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.aggregate_registry import aggregate_functions, has_aggregate
from kquery_spark.functions.registry import functions, has_function


def named_function(name: str) -> Callable[..., Column] | None:
    """A Python function that builds calls of the SQL function ``name``; None when there is no such function.

    As in PySpark the first argument may be a column's name; the others are columns or constants.
    """
    spelled = name.rstrip("_")
    if not has_function(spelled) and not has_aggregate(spelled):
        return None

    def build(*arguments: object, distinct: bool = False) -> Column:
        nodes: list[ast.Expression] = []
        for place, argument in enumerate(arguments):
            by_name = place == 0 and isinstance(argument, str)
            nodes.append(to_column(argument).node if by_name else lit(argument).node)  # type: ignore[arg-type]
        if spelled == "count" and not nodes:
            nodes = [ast.Star()]
        return Column(ast.Call((spelled,), tuple(nodes), distinct=distinct))

    build.__name__ = name
    build.__doc__ = f"SQL's ``{spelled}``; the first argument may be a column's name."
    return build


def function_names() -> list[str]:
    """Every function there is."""
    return sorted({*functions(), *aggregate_functions()})
