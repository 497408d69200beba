"""From logical nodes to operators: one function for each class of node, registered by ``@lowers``."""

from kquery_spark.planner.lowering import (
    aggregate,
    join,
    python_cogroups,
    python_functions,
    recursion,
    rows,
    scan,
    sort,
    union,
    window,
)
from kquery_spark.planner.lowering.registry import lowering_of, lowers

__all__ = [
    "aggregate",
    "join",
    "lowering_of",
    "lowers",
    "python_cogroups",
    "python_functions",
    "recursion",
    "rows",
    "scan",
    "sort",
    "union",
    "window",
]
