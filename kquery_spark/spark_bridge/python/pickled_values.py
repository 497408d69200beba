"""Decides which types the engine can convert exactly as Spark does for ``@udf`` without Arrow, whose values are pickled."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python.java_maps import is_known_key
from kquery_spark.types import names as t

PICKLED = int(PythonEvalType.SQL_BATCHED_UDF)
"""The evaluation type of ``@udf`` without Arrow."""
_PLAIN = (t.BOOL, t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DATE, t.DAY_TIME)


@dataclass(frozen=True)
class Pickling:
    """How a session's JVM pickles values.

    binary_as_bytes: binary values become ``bytes``, not ``bytearray``. oversizes_put_all: True if ``HashMap.putAll``
    allocates room for up to twice as many entries as it puts, which affects the order of a map.
    """

    binary_as_bytes: bool = True
    oversizes_put_all: bool = True


def is_picklable(dtype: pa.DataType) -> bool:
    """Return whether the engine converts arguments and results of a type exactly as Spark does."""
    if pa.types.is_map(dtype) and not is_known_key(dtype.key_type):
        return False
    if t.is_nested(dtype):
        return t.has_distinct_fields(dtype) and all(map(is_picklable, t.parts_of(dtype)))
    return dtype in _PLAIN or t.is_decimal(dtype) or bool(pa.types.is_timestamp(dtype))


def has_maps(dtype: pa.DataType) -> bool:
    """Return whether a type is or contains a map."""
    return bool(pa.types.is_map(dtype)) or any(map(has_maps, t.parts_of(dtype)))
