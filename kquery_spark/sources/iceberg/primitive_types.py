"""Maps Iceberg's primitive types to Arrow types."""

from __future__ import annotations

import re

import pyarrow as pa

from kquery_spark.types import names as t

_TYPES = {
    "boolean": t.BOOL,
    "int": t.INT,
    "long": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "date": t.DATE,
    "string": t.STRING,
    "binary": t.BINARY,
    "timestamp": t.TIMESTAMP_NTZ,
}
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")


def primitive_type(kind: str, time_zone: str) -> pa.DataType | None:
    """Return the Arrow type of a primitive type like ``decimal(9, 2)``; None if the engine does not support it."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return t.decimal(int(decimal[1]), int(decimal[2]))
    return t.timestamp(time_zone) if kind == "timestamptz" else _TYPES.get(kind)
