"""Properties of a function that the optimizer and the cost model use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kquery_spark.functions.evaluation import ArgumentTest


class Constructor(Enum):
    """The nested value that a function builds from its arguments."""

    ARRAY = "array(x, y)"
    STRUCT = "named_struct('a', x, 'b', y)"
    MAP = "map(a, x, b, y)"


class Simplification(Enum):
    """The Catalyst rule that replaces a call by a simpler expression, depending on the call's arguments."""

    CASE_CHANGE = "only the outermost of nested changes of case matters"
    ELEMENT = "an element of an array or struct that is built in place is the argument that it is built from"
    MAP_VALUE = "a value of a map that is built in place is a CASE over its keys"
    SIZE = "the size of a map that is built in place is the number of its keys"


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Properties of a function for optimizer rules and estimates.

    deterministic: False if each call may return another value.
    foldable: True if a call with constant arguments is a constant.
    selectivity: expected share of the rows for which it is true as a filter; None for the default.
    distinct_values: number of distinct results, including NULL; None if there are many.
    builds: the nested value that it builds. simplification: how constant folding simplifies its calls.
    null_for: a test that is True if a call with certain arguments is NULL, whatever its other arguments are.
    reads_path: True if it extracts the value at a path, its second argument, from a variant.
    """

    deterministic: bool = True
    foldable: bool = True
    selectivity: float | None = None
    distinct_values: float | None = None
    builds: Constructor | None = None
    simplification: Simplification | None = None
    null_for: ArgumentTest | None = None
    reads_path: bool = False
