"""Decides which types the engine can convert exactly as Spark does for ``@udf`` without Arrow, whose values are pickled."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType
from kquery_spark.types import names as t

PICKLED = int(PythonEvalType.SQL_BATCHED_UDF)
"""The evaluation type of ``@udf`` without Arrow."""
_PLAIN = (t.BOOL, t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DATE, t.DAY_TIME)


@dataclass(frozen=True)
class Pickling:
    """How a session's JVM pickles values. binary_as_bytes: binary values become ``bytes``, not ``bytearray``."""

    binary_as_bytes: bool = True


def is_picklable(dtype: pa.DataType) -> bool:
    """Return whether the engine converts arguments and results of a type exactly as Spark does.

    It does not for maps: they pass through Java's hash maps, which change the order of their entries.
    """
    if pa.types.is_map(dtype):
        return False
    if t.is_nested(dtype):
        return t.has_distinct_fields(dtype) and all(map(is_picklable, t.parts_of(dtype)))
    return dtype in _PLAIN or t.is_decimal(dtype) or bool(pa.types.is_timestamp(dtype))
