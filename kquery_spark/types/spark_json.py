"""The JSON of Spark's data types (``DataType.jsonValue``), which plans, table formats and Parquet footers contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from kquery_spark.types import names as t

ATOMIC: Final[dict[str, pa.DataType]] = {
    "void": t.NULL,
    "boolean": t.BOOL,
    "byte": t.BYTE,
    "short": t.SHORT,
    "integer": t.INT,
    "long": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp_ntz": t.TIMESTAMP_NTZ,
}
"""The types whose Arrow type needs neither parameters nor a time zone."""
DECIMAL: Final = re.compile(r"decimal\((\d{1,3}),\s*(-?\d{1,3})\)")
COLLATIONS_KEY: Final = "__COLLATIONS"
"""The key in a field's metadata for the collations of its strings, because the JSON of their types has none."""
RAW_TYPE_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a field's metadata for a type with CHAR(n) or VARCHAR(n), which are plain strings in JSON."""
_CHAR = re.compile(r"\bchar\(")


def fields_within(field: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a ``StructField``, and those of all structs inside of its type."""
    yield field
    yield from _fields_of(field["type"])


def _fields_of(spark: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(spark, dict):
        for field in spark.get("fields", ()):
            yield from fields_within(field)
        for key in ("elementType", "keyType", "valueType"):
            yield from _fields_of(spark.get(key))


def padded_type(field: Mapping[str, Any]) -> str | None:
    """Return the declaration of a ``StructField`` with CHAR(n), such as ``array<char(3)>``; None for other fields.

    Spark pads the values of such a column, and the literals that it is compared with (``ApplyCharTypePadding``).
    """
    raw_types = (str((part.get("metadata") or {}).get(RAW_TYPE_KEY, "")) for part in fields_within(field))
    return next((raw for raw in raw_types if _CHAR.search(raw)), None)
