"""Lowerings turn logical nodes into operators. There is one function per class of node, registered by ``@lowers``."""

from kquery_spark.planner.lowering import (  # noqa: F401  each module registers its lowerings
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
