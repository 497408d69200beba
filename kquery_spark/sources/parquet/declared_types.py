"""The column types that Spark declares in the footer of its Parquet files.

Parquet has no types for Spark's intervals, variants, and user-defined types, and no collations. Spark stores such columns
with other types, and writes their declared types into the footer, as the JSON of a ``StructType``
(``ParquetWriteSupport``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kquery_spark.errors import Unsupported

_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_COLLATIONS_KEY = "__COLLATIONS"
_DAY_TIME, _TIME = "interval day to second", "time(6)"
_UNSUPPORTED = ("interval", "variant", "time(", "udt", "geometry", "geography")


def declared_fields(footer: Mapping[bytes, bytes]) -> dict[str, Mapping[str, Any]]:
    """The columns in the schema that Spark wrote, by name: the JSON of each ``StructField``; empty for other files.

    footer: the key-value pairs. A malformed schema is ignored, as by ``ParquetFileFormat``.
    """
    try:
        fields = json.loads(footer.get(_SCHEMA_KEY, b"{}")).get("fields", ())
        return {field["name"]: field for field in fields}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def is_day_time(field: Mapping[str, Any]) -> bool:
    """Return whether Spark declares a column as a day-time interval, which is stored as a number of microseconds.

    Raises Unsupported for other columns whose stored type is not the declared one.
    """
    declared = field.get("type")
    if declared == _DAY_TIME:
        return True
    if (field.get("metadata") or {}).get(_COLLATIONS_KEY):
        raise Unsupported(
            f"the Parquet column {field['name']} has a collation, which the engine does not compare by"
        )
    for name in _type_names(declared):
        if name.startswith(_UNSUPPORTED) and name != _TIME:
            raise Unsupported(
                f"the Parquet column {field['name']} has the type {name}, which is not supported"
            )
    return False


def _type_names(declared: Any) -> Iterator[str]:
    """The names of a type in JSON and of the types inside of it."""
    if isinstance(declared, str):
        yield declared
    elif isinstance(declared, dict):
        yield str(declared.get("type"))
        parts = [field["type"] for field in declared.get("fields", ())]
        parts += [declared.get(key) for key in ("elementType", "keyType", "valueType")]
        for part in parts:
            yield from _type_names(part)
