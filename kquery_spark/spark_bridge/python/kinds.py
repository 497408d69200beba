"""Kinds of Python functions, by PySpark's evaluation types: how Spark exchanges their arguments and results."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType


@dataclass(frozen=True)
class PythonKind:
    """A kind of Python function. words: its name in messages.

    takes_rows, gives_rows: True if its arguments (its results) are sent as one struct column with named fields.
    """

    words: str
    takes_rows: bool = False
    gives_rows: bool = False


_NAMED = {
    "SQL_BATCHED_UDF": PythonKind("a Python UDF"),
    "SQL_ARROW_BATCHED_UDF": PythonKind("an Arrow-optimized Python UDF"),
    "SQL_SCALAR_PANDAS_UDF": PythonKind("a pandas UDF"),
    "SQL_SCALAR_PANDAS_ITER_UDF": PythonKind("an iterator pandas UDF"),
    "SQL_SCALAR_ARROW_UDF": PythonKind("an Arrow UDF"),
    "SQL_SCALAR_ARROW_ITER_UDF": PythonKind("an iterator Arrow UDF"),
    "SQL_GROUPED_AGG_PANDAS_UDF": PythonKind("a grouped aggregate pandas UDF"),
    "SQL_GROUPED_AGG_PANDAS_ITER_UDF": PythonKind("an iterator grouped aggregate pandas UDF"),
    "SQL_GROUPED_AGG_ARROW_UDF": PythonKind("a grouped aggregate Arrow UDF"),
    "SQL_GROUPED_AGG_ARROW_ITER_UDF": PythonKind("an iterator grouped aggregate Arrow UDF"),
    "SQL_GROUPED_MAP_PANDAS_UDF": PythonKind("applyInPandas", gives_rows=True),
    "SQL_GROUPED_MAP_PANDAS_ITER_UDF": PythonKind("applyInPandas", gives_rows=True),
    "SQL_GROUPED_MAP_ARROW_UDF": PythonKind("applyInArrow", True, True),
    "SQL_GROUPED_MAP_ARROW_ITER_UDF": PythonKind("applyInArrow", True, True),
    "SQL_COGROUPED_MAP_PANDAS_UDF": PythonKind("a cogrouped applyInPandas", gives_rows=True),
    "SQL_COGROUPED_MAP_ARROW_UDF": PythonKind("a cogrouped applyInArrow", gives_rows=True),
    "SQL_WINDOW_AGG_PANDAS_UDF": PythonKind("a pandas UDF over a window"),
    "SQL_WINDOW_AGG_ARROW_UDF": PythonKind("an Arrow UDF over a window"),
    "SQL_MAP_PANDAS_ITER_UDF": PythonKind("mapInPandas", True, True),
    "SQL_MAP_ARROW_ITER_UDF": PythonKind("mapInArrow", True, True),
    "SQL_TABLE_UDF": PythonKind("a Python table function", gives_rows=True),
    "SQL_ARROW_TABLE_UDF": PythonKind("an Arrow-optimized Python table function", gives_rows=True),
    "SQL_ARROW_UDTF": PythonKind("an Arrow table function", gives_rows=True),
}
_TYPES = {name: int(getattr(PythonEvalType, name)) for name in _NAMED if hasattr(PythonEvalType, name)}
"""The evaluation types that this PySpark has."""
_BY_TYPE = {eval_type: _NAMED[name] for name, eval_type in _TYPES.items()}
_OVER_WINDOWS = {
    "SQL_GROUPED_AGG_PANDAS_UDF": "SQL_WINDOW_AGG_PANDAS_UDF",
    "SQL_GROUPED_AGG_ARROW_UDF": "SQL_WINDOW_AGG_ARROW_UDF",
}
_TYPES_OVER_WINDOWS = {_TYPES[name]: _TYPES[over] for name, over in _OVER_WINDOWS.items() if over in _TYPES}

PICKLED_TABLE = _TYPES["SQL_TABLE_UDF"]
"""The evaluation type of table functions whose rows are pickled."""
BATCHED_TABLE = _TYPES.get("SQL_ARROW_UDTF")
"""The evaluation type of table functions that receive and return batches of rows, since 4.1."""

GROUPED_AGGREGATE = int(PythonEvalType.SQL_GROUPED_AGG_PANDAS_UDF)
"""The evaluation type of all aggregate functions before 4.1, whose plans do not name it."""


def kind_of(eval_type: int) -> PythonKind | None:
    """The kind of an evaluation type; None if it is unknown."""
    return _BY_TYPE.get(eval_type)


def type_over_windows(eval_type: int) -> int | None:
    """The evaluation type for calls of a grouped aggregate function over windows; None if it is unknown."""
    return _TYPES_OVER_WINDOWS.get(eval_type)
